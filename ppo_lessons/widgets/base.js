// Shared by every widget: elements, rows of controls, axes, handles, keys, stepping. `WORDS` and `STATES` follow this text,
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
    pick: (...keys) => Object.fromEntries(keys.map((key) => [key, model.get(key)])),
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
      put(where, { "data-state": name });
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
    if (event.key.startsWith("Arrow") && event.target.closest?.("input, select, .ppo-handle")) return;
    steps.by(change);
    event.preventDefault();
    event.stopPropagation();
  }, true);

  // An act that runs now and whenever one of these traits changes.
  const watch = (keys, act) => {
    store.on(keys, act);
    act();
  };

  const dispose = () => endings.splice(0).reverse().forEach((end) => end());
  return { root, tools, body, status, words, store, listen, button, watch, steps, stepping,
    endings, dispose };
}

function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// --- rows: a slider bound to a trait, a guess, a step with Play, numbers, a key to the marks

function row(...children) {
  return make("div", { class: "ppo-row" }, ...children);
}

// A native range input that sets one trait; `patch(value)` may set more.
function sliderRow(shell, { key, min, max, step, digits = 2, text = shell.words[key],
  patch = (value) => ({ [key]: value }) }) {
  const { store } = shell;
  const input = make("input", { type: "range", min, max, step });
  const shown = make("span", { class: "ppo-value", "aria-hidden": "true" });
  shell.listen(input, "input", () => store.set(patch(Number(input.value))));
  shell.watch([key], () => {
    input.value = String(store.get(key));
    write(shown, written(store.get(key), digits));
  });
  return make("label", {}, text, input, shown);
}

// Buttons of which one is pressed: [[value, text], ...] for one trait.
function choiceRow(shell, { key, options, name, patch = (value) => ({ [key]: value }) }) {
  const buttons = options.map(([value, text]) => {
    const node = make("button", { type: "button" }, text);
    shell.listen(node, "click", () => shell.store.set(patch(value)));
    return [value, node];
  });
  shell.watch([key], () => buttons.forEach(([value, node]) =>
    put(node, { "aria-pressed": shell.store.get(key) === value })));
  return make("div", { class: "ppo-row", role: "group", "aria-label": name },
    ...buttons.map(([, node]) => node));
}

// Predict, then reveal. `question()` is the question; `range()` gives {low, high, whole} where a
// number is asked for, `options` is [[value, text], ...] where one of a few is; `answer(guess)` says
// what came out, with guess null where nothing was said: who says nothing may reveal all the same.
function guessRows(shell, { question, range, options, answer }) {
  const { store, words, status, button } = shell;
  const input = options
    ? make("select", {}, make("option", { value: "" }, words.choose),
      ...options.map(([value, text]) => make("option", { value }, text)))
    : make("input", { type: "number" });
  const asked = make("span");
  const asking = row(make("label", {}, asked, input), button("reveal", () => {
    if (said() === undefined) return write(status, wanted());
    store.set({ guess: said(), revealed: true });
  }, { class: "ppo-main" }));
  const answered = make("span");
  const done = row(answered, button("guess_again", () => {
    input.value = "";
    store.set({ guess: null, revealed: false });
  }));
  const wanted = () => {
    const { low, high, whole } = range();
    return say(words, whole ? "guess_range" : "guess_number", {
      low: String(low).replace("-", "−"), high: String(high).replace("-", "−") });
  };
  // null while the box is empty, undefined if it holds no possible answer
  const said = () => {
    if (input.value === "") return input.validity.badInput ? undefined : null;
    if (options) return input.value;
    const number = Number(input.value);
    const { low, high, whole } = range();
    const known = number >= low && number <= high && (!whole || Number.isInteger(number));
    return known ? number : undefined;
  };
  shell.listen(shell.root, "ppo-leave", () => {
    if (!asking.hidden && said() !== undefined && said() !== null) store.set({ guess: said() });
  });
  shell.listen(input, "keydown", (event) => {
    if (event.key === "Enter") asking.querySelector("button").click();
  });
  for (const node of [asking, done]) node.classList.add("ppo-guess");
  const update = (shown = true) => {
    const revealed = store.get("revealed");
    if (!options) {
      const { low, high, whole } = range();
      put(input, { min: low, max: high, step: whole ? 1 : "any",
        inputmode: whole ? "numeric" : "decimal" });
    }
    write(asked, question());
    asking.hidden = !shown || revealed;
    done.hidden = !shown || !revealed;
    if (revealed) write(answered, answer(store.get("guess")));
  };
  return { nodes: [asking, done], update };
}

// A step that a hand or Play moves, up to `last()`; who wants no motion sees the end at once.
function playRow(shell, { key = "step", first = 0, last, ms = () => 120, after = [] }) {
  const { store, words } = shell;
  let timer = null;
  const input = make("input", { type: "range", min: first, step: 1 });
  const shown = make("span", { class: "ppo-value", "aria-hidden": "true" });
  const halt = () => {
    clearInterval(timer);
    timer = null;
    write(button, words.play);
  };
  const play = () => {
    halt();
    if (calm()) return store.set({ [key]: last() });
    if (store.get(key) >= last()) store.set({ [key]: first });
    write(button, words.stop);
    timer = setInterval(() => {
      store.set({ [key]: Math.min(store.get(key) + 1, last()) });
      if (store.get(key) >= last()) halt();
    }, ms());
  };
  const button = shell.button("play", () => (timer ? halt() : play()));
  shell.listen(input, "input", () => {
    halt();
    store.set({ [key]: Number(input.value) });
  });
  shell.endings.push(halt);
  const at = () => clamp(store.get(key), first, last());
  const update = () => {
    put(input, { max: last() });
    input.value = String(at());
    write(shown, String(at()));
  };
  const node = row(make("label", {}, words[key], input, shown), button, ...after);
  return { node, halt, play, at, update };
}

// Numbers under their names; null is hidden.
function numberList(shell, keys) {
  const node = make("dl", { class: "ppo-numbers" });
  const values = keys.map((key) => {
    const value = make("dd");
    node.append(make("div", {}, make("dt", {}, shell.words[key]), value));
    return value;
  });
  return { node, update: (texts) => texts.forEach((text, index) =>
    write(values[index], text ?? shell.words.hidden)) };
}

// What the marks mean: [[kind, text], ...], a mark of MARKS each.
function markKey(entries) {
  const node = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  for (const [kind, text] of entries) {
    node.append(make("span", { class: "ppo-key" }, draw("svg", { viewBox: "-9 -9 18 18" },
      draw("path", { class: "ppo-mark", d: MARKS[kind], "data-kind": kind })), text));
  }
  return node;
}

// What the bars and lines mean: [[class of a rect or path, text], ...], a small piece of each.
function lineKey(entries) {
  const node = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  for (const [style, text] of entries) {
    const piece = style.includes("bar") ? draw("rect", { x: 2, y: 3, width: 24, height: 12 })
      : draw("path", { d: "M0,9H28" });
    node.append(make("span", { class: "ppo-key" },
      draw("svg", { class: "ppo-long", viewBox: "0 0 28 18" }, put(piece, { class: style })), text));
  }
  return node;
}

// --- axes: a panel of fixed size, so that nothing jumps; big letters take room from the plot

const PANEL = { width: 520, height: 350 };

// `xTicks`, `yTicks` are values; `tick`, `xTick`, `yTick` write them. A wide panel takes the width
// of two: give {...PANEL, width: 1060} and put the drawing into a `.ppo-wide`.
function axes(svg, { x, y, xTicks, yTicks, xLabel, yLabel, title, large, tick = String,
  xTick = tick, yTick = tick, xGrid = true, panel = PANEL }) {
  const size = large ? 20 : 15;
  const box = {
    left: size * 4.2, right: panel.width - size * 1.1,
    top: size * 2.1, bottom: panel.height - size * 3.2,
  };
  const X = (value) => box.left + ((value - x[0]) / (x[1] - x[0])) * (box.right - box.left);
  const Y = (value) => box.bottom - ((value - y[0]) / (y[1] - y[0])) * (box.bottom - box.top);
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${panel.width} ${panel.height}` });
  svg.replaceChildren(back);
  for (const value of xTicks) {
    if (xGrid) {
      back.append(draw("line", { class: "ppo-grid", x1: X(value), x2: X(value), y1: box.top,
        y2: box.bottom }));
    }
    back.append(label({ x: X(value), y: box.bottom + size * 1.15, "text-anchor": "middle" },
      xTick(value)));
  }
  for (const value of yTicks) {
    back.append(
      draw("line", { class: "ppo-grid", x1: box.left, x2: box.right, y1: Y(value), y2: Y(value) }),
      label(
        { x: box.left - size * 0.4, y: Y(value) + size * 0.35, "text-anchor": "end" }, yTick(value),
      ),
    );
  }
  const middle = (box.top + box.bottom) / 2;
  back.append(
    draw("path", { class: "ppo-frame", d: `M${box.left},${box.top}V${box.bottom}H${box.right}` }),
    label({ x: (box.left + box.right) / 2, y: panel.height - size * 0.65, "text-anchor": "middle" },
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
  const atY = (pixel) => y[0] + ((box.bottom - pixel) / (box.bottom - box.top)) * (y[1] - y[0]);
  return { X, Y, atX, atY, box, size, layer };
}

function line(points) {
  return points.map(([x, y], index) => `${index ? "L" : "M"}${fixed(x, 2)},${fixed(y, 2)}`).join("");
}

// A bar from one height to another (from 0 if there is one number), `at` its middle.
function setBar(plot, node, { at, width, to, from = 0 }) {
  const [top, bottom] = [plot.Y(Math.max(to, from)), plot.Y(Math.min(to, from))];
  return put(node, { x: fixed(plot.X(at - width / 2), 2), width: fixed(plot.X(width) - plot.X(0), 2),
    y: fixed(top, 2), height: fixed(Math.max(bottom - top, 0), 2) });
}

// --- handles: what a hand drags, and keys move; one tab stop for a group

// A group of handles in one panel. Each item has
//   node      made by `pointHandle` or `barHandle`
//   get()     its value; move(value) sets it, snapped by the widget
//   nudge     what one press of an arrow adds; with shift ten times that
//   at()      for bars: where it stands across, to find the nearest
// `along` is "x" or "y": the arrows of that direction move a handle, the others choose another.
function handleGroup(shell, svg, plot, { name, items, along = "x" }) {
  const group = plot.layer({ role: "group", "aria-label": name });
  group.append(...items.map((item) => item.node));
  const moves = along === "x" ? { ArrowRight: 1, ArrowLeft: -1 } : { ArrowUp: 1, ArrowDown: -1 };
  const walks = along === "x" ? { ArrowUp: 1, ArrowDown: -1 } : { ArrowRight: 1, ArrowLeft: -1 };
  const across = (item) => (along === "x" ? item.get() : item.at());
  const choose = (chosen) => items.forEach((item) =>
    put(item.node, { tabindex: item === chosen ? 0 : -1 }));
  for (const item of items) { // the listeners go with the nodes
    item.node.addEventListener("focus", () => choose(item));
    item.node.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (moves[event.key]) {
        item.move(item.get() + moves[event.key] * item.nudge * (event.shiftKey ? 10 : 1));
      } else if (walks[event.key]) {
        const order = [...items].sort((a, b) => across(a) - across(b)
          || items.indexOf(a) - items.indexOf(b));
        const to = order.indexOf(item) + walks[event.key];
        order[clamp(to, 0, order.length - 1)].node.focus();
      } else return;
      event.preventDefault();
    });
  }
  if (items.length) choose(items[0]);

  // The handle nearest to the pointer follows it, also where several overlap.
  let held = null;
  let frame = null; // from the screen into the panel as it lay when the drag began
  const pointAt = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(frame);
  const valueAt = (event) => (along === "x" ? plot.atX(pointAt(event).x) : plot.atY(pointAt(event).y));
  group.addEventListener("pointerdown", (event) => {
    frame = svg.getScreenCTM().inverse();
    const place = plot.atX(pointAt(event).x);
    const distance = (item) => Math.abs(across(item) - place);
    held = items.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    group.setPointerCapture(event.pointerId);
    held.node.focus({ preventScroll: true });
    event.preventDefault();
  });
  group.addEventListener("pointermove", (event) => held?.move(valueAt(event)));
  for (const type of ["pointerup", "pointercancel"]) {
    group.addEventListener(type, () => (held = null));
  }
  return group;
}

// A mark that is dragged sideways; `set` puts it somewhere and says its value.
function pointHandle({ min, max }) {
  const mark = draw("path", { class: "ppo-mark" });
  const node = draw("g", { class: "ppo-handle", role: "slider", tabindex: -1,
    "aria-orientation": "horizontal", "aria-valuemin": min, "aria-valuemax": max },
  draw("circle", { class: "ppo-hit", r: 13 }), draw("circle", { class: "ppo-ring", r: 11 }), mark);
  const set = ({ x, y, name, value, text }) => put(node, {
    transform: `translate(${fixed(x, 2)},${fixed(y, 2)})`, "aria-label": name,
    "aria-valuenow": value, "aria-valuetext": text });
  return { node, mark, set };
}

// The end of a bar that is dragged up and down; its whole column can be taken hold of.
function barHandle(plot, { min, max, at, width }) {
  const [left, right] = [plot.X(at - width / 2), plot.X(at + width / 2)];
  const { top, bottom } = plot.box;
  const grip = draw("path", { class: "ppo-grip" });
  const ring = draw("rect", { class: "ppo-ring", x: left - 3, width: right - left + 6, rx: 3 });
  const node = draw("g", { class: "ppo-handle ppo-upright", role: "slider", tabindex: -1,
    "aria-orientation": "vertical", "aria-valuemin": min, "aria-valuemax": max },
  draw("rect", { class: "ppo-hit", x: left, y: top, width: right - left, height: bottom - top }),
  ring, grip);
  const set = ({ value, name, text }) => {
    const y = plot.Y(value);
    put(ring, { y: fixed(Math.min(y, plot.Y(0)) - 3, 2),
      height: fixed(Math.abs(y - plot.Y(0)) + 6, 2) });
    put(grip, { d: `M${fixed(left, 2)},${fixed(y, 2)}H${fixed(right, 2)}` });
    put(node, { "aria-label": name, "aria-valuenow": value, "aria-valuetext": text });
  };
  return { node, set };
}

// Shapes carry the meaning, colour repeats it: a circle pushes, a triangle pushes back (it points
// right, and is turned where back is left), a cross is silent, a diamond is hidden.
const MARKS = {
  push: "M-6,0a6,6 0 1,0 12,0a6,6 0 1,0 -12,0Z",
  back: "M-6,-7.5L8,0L-6,7.5Z",
  silent: "M-6,-6L6,6M-6,6L6,-6",
  hidden: "M0,-7L6,0L0,7L-6,0Z",
};
