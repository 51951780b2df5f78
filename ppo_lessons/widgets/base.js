// Shared by every widget: elements, axes, keys, stepping. `WORDS` and `STATES` follow this text,
// then the widget's own script. Nothing here is loaded from anywhere.
const SVG = "http://www.w3.org/2000/svg";
const SYNC_MS = 40; // at most one message to the kernel in this time
const PLAIN_KEYS = new Set([
  "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "Enter", " ", "Backspace",
  "Delete",
]);

// --- elements and words

function put(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    const text = String(value);
    if (node.getAttribute(key) !== text) node.setAttribute(key, text);
  }
  return node;
}

function make(tag, attributes = {}, ...children) {
  const node = put(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

function draw(tag, attributes = {}, ...children) {
  const node = put(document.createElementNS(SVG, tag), attributes);
  node.append(...children);
  return node;
}

function label(attributes, text) {
  return draw("text", attributes, text);
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function say(words, key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function fixed(value, digits) {
  const text = value.toFixed(digits);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text;
}

// For reading, not for coordinates: with a true minus.
function written(value, digits) {
  return fixed(value, digits).replace("-", "−");
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// --- state: the model's traits, sent to the kernel at most once in SYNC_MS

function makeStore(model) {
  let timer = null;
  const heard = [];
  const send = () => {
    timer = null;
    try {
      model.save_changes();
    } catch {
      // no kernel behind the page: the picture needs none
    }
  };
  return {
    get: (key) => model.get(key),
    set(patch) {
      for (const [key, value] of Object.entries(patch)) model.set(key, value);
      if (timer === null) timer = setTimeout(send, SYNC_MS);
    },
    on(keys, act) {
      for (const key of keys) {
        model.on(`change:${key}`, act);
        heard.push([`change:${key}`, act]);
      }
    },
    dispose() {
      if (timer !== null) {
        clearTimeout(timer);
        send();
      }
      for (const [name, act] of heard) model.off(name, act);
    },
  };
}

// --- the frame around each widget: title, tools, body, one live region

function makeShell({ model, el, page, mark = "title", kept = [] }) {
  const words = WORDS[model.get("language")] ?? WORDS.en;
  const store = makeStore(model);
  const endings = [() => store.dispose()];
  const listen = (target, type, act, options) => {
    target.addEventListener(type, act, options);
    endings.push(() => target.removeEventListener(type, act, options));
  };
  const button = (key, act, attributes = {}) => {
    const node = make("button", { type: "button", ...attributes }, words[key]);
    listen(node, "click", act);
    return node;
  };

  const root = make("section", { class: "ppo", role: "group", "aria-label": words.title });
  const tools = make("div", { class: "ppo-tools" });
  const body = make("div", { class: "ppo-body" });
  const status = make("p", { class: "ppo-status", role: "status", "aria-live": "polite" });
  const failure = make("p", { class: "ppo-error", hidden: "" });
  const heading = make("p", { class: "ppo-title" }, words[mark]);

  const large = button("large", () => store.set({ large: !store.get("large") }), {
    "aria-pressed": "false",
  });
  const full = button("full", () => {
    if (document.fullscreenElement === root) document.exitFullscreen();
    else root.requestFullscreen?.().catch(() => {});
  });
  const steps = makeStepper();
  tools.append(steps.node, large, full);
  root.append(make("div", { class: "ppo-head" }, heading, tools), body, status, failure);
  el.append(root);
  endings.push(() => root.remove());

  // Stepping is for a projector: in full screen, and on a page of its own.
  function makeStepper() {
    let at = 0;
    const where = make("span", { class: "ppo-where" });
    const go = (to) => {
      root.dispatchEvent(new CustomEvent("ppo-leave"));
      at = clamp(to, 0, STATES.length - 1);
      const patch = { ...STATES[at].patch };
      for (const name of kept) delete patch[name];
      store.set(patch);
      show();
      announce();
    };
    const announce = () => root.dispatchEvent(new CustomEvent("ppo-state",
      { detail: { name: STATES[at].name, large: store.get("large") } }));
    const show = () => {
      const { name } = STATES[at];
      const title = words[`state_${name}`];
      write(where, say(words, "where", { number: at + 1, total: STATES.length, title }));
      before.disabled = at === 0;
      after.disabled = at === STATES.length - 1;
    };
    const before = make("button", { type: "button", "aria-label": words.previous }, "‹");
    const after = make("button", { type: "button", "aria-label": words.next }, "›");
    listen(before, "click", () => go(at - 1));
    listen(after, "click", () => go(at + 1));
    const node = make("div", { class: "ppo-steps" }, before, where, after);
    if (STATES.length > 0) show();
    return {
      node,
      announce,
      by: (change) => go(at + change),
      open(name) {
        const found = STATES.findIndex((state) => state.name === name);
        if (found >= 0) go(found);
        else announce(); // the address becomes that of what is shown
      },
    };
  }

  listen(root, "ppo-open", ({ detail }) => {
    if (detail.large) store.set({ large: true });
    steps.open(detail.name);
  });

  const stepping = () => STATES.length > 1 && (page || document.fullscreenElement === root);
  const lookChanged = () => {
    root.classList.toggle("ppo-large", store.get("large"));
    root.classList.toggle("ppo-full", document.fullscreenElement === root);
    put(large, { "aria-pressed": store.get("large") });
    write(full, document.fullscreenElement === root ? words.leave_full : words.full);
    steps.node.hidden = !stepping();
    const reason = store.get("error");
    failure.hidden = !reason;
    write(failure, reason ? say(words, "failed", { reason }) : "");
  };
  store.on(["large", "error"], lookChanged);
  if (STATES.length > 1) store.on(["large"], steps.announce);
  listen(document, "fullscreenchange", lookChanged);
  lookChanged();

  // Only what a widget uses is kept from the notebook: Ctrl+S, Tab and F5 pass through.
  listen(root, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") root.ownerDocument.activeElement?.blur();
    else if (PLAIN_KEYS.has(event.key) || event.key.length === 1) event.stopPropagation();
  });
  // Before the controls hear it; arrows belong to a control that moves with them.
  listen(page ? document : root, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !stepping()) return;
    const change = { PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!change) return;
    if (event.key.startsWith("Arrow") && event.target.closest?.("input, select, .ppo-sample")) return;
    steps.by(change);
    event.preventDefault();
    event.stopPropagation();
  }, true);

  const dispose = () => endings.splice(0).reverse().forEach((end) => end());
  return { root, tools, body, status, words, store, listen, button, steps, stepping, endings,
    dispose };
}

function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// --- axes: a panel of fixed size, so that nothing jumps; big letters take room from the plot

const PANEL = { width: 520, height: 350 };

function axes(svg, { x, y, xTicks, yTicks, xLabel, yLabel, title, large, tick = String }) {
  const size = large ? 20 : 15;
  const box = {
    left: size * 4.2, right: PANEL.width - size * 1.1,
    top: size * 2.1, bottom: PANEL.height - size * 3.2,
  };
  const X = (value) => box.left + ((value - x[0]) / (x[1] - x[0])) * (box.right - box.left);
  const Y = (value) => box.bottom - ((value - y[0]) / (y[1] - y[0])) * (box.bottom - box.top);
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${PANEL.width} ${PANEL.height}` });
  svg.replaceChildren(back);
  for (const value of xTicks) {
    back.append(
      draw("line", { class: "ppo-grid", x1: X(value), x2: X(value), y1: box.top, y2: box.bottom }),
      label({ x: X(value), y: box.bottom + size * 1.15, "text-anchor": "middle" }, tick(value)),
    );
  }
  for (const value of yTicks) {
    back.append(
      draw("line", { class: "ppo-grid", x1: box.left, x2: box.right, y1: Y(value), y2: Y(value) }),
      label(
        { x: box.left - size * 0.4, y: Y(value) + size * 0.35, "text-anchor": "end" }, tick(value),
      ),
    );
  }
  const middle = (box.top + box.bottom) / 2;
  back.append(
    draw("path", { class: "ppo-frame", d: `M${box.left},${box.top}V${box.bottom}H${box.right}` }),
    label({ x: (box.left + box.right) / 2, y: PANEL.height - size * 0.65, "text-anchor": "middle" },
      xLabel),
    label({ x: size, y: middle, "text-anchor": "middle",
      transform: `rotate(-90 ${size} ${middle})` }, yLabel),
    label({ class: "ppo-heading", x: large ? size : box.left, y: size * 1.2 }, title),
  );
  const layer = (attributes = { "aria-hidden": "true" }) => {
    const node = draw("g", { "font-size": size, ...attributes });
    svg.append(node);
    return node;
  };
  const atX = (pixel) => x[0] + ((pixel - box.left) / (box.right - box.left)) * (x[1] - x[0]);
  return { X, Y, atX, box, size, layer };
}

function line(points) {
  return points.map(([x, y], index) => `${index ? "L" : "M"}${fixed(x, 2)},${fixed(y, 2)}`).join("");
}

// Shapes carry the meaning, colour repeats it: a circle pushes, a triangle pushes back (it points
// right, and is turned where back is left), a cross is silent, a diamond is hidden.
const MARKS = {
  push: "M-6,0a6,6 0 1,0 12,0a6,6 0 1,0 -12,0Z",
  back: "M-6,-7.5L8,0L-6,7.5Z",
  silent: "M-6,-6L6,6M-6,6L6,-6",
  hidden: "M0,-7L6,0L0,7L-6,0Z",
};
