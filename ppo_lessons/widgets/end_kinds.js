// --- numbers: held to Python's in random states

// The critic says 1 + the steps since the reset; the rollout begins at the fifth step.
export function valuesOf(ends) {
  const values = [FIRST_VALUE];
  for (const end of ends.slice(0, -1)) values.push(end === "continue" ? values.at(-1) + 1 : 1);
  return values;
}

function handle({ ends, way, gamma, gae_lambda }) {
  const last = ends.length - 1;
  const values = valuesOf(ends);
  const asked = values.map((value, t) =>
    (AFTER_RESET.includes(way) && t < last ? values[t + 1] : value + 1));
  const counted = ends.map((end, t) => end !== "terminated"
    && !(way === "flags_merged" && end === "truncated")
    && !(way === "nothing_after_last" && t === last));
  const goes = ends.map((end, t) => t < last
    && (end === "continue" || (end === "truncated" && IGNORED.includes(way))));
  return { values, asked, counted, goes, ...backwards({ rewards: REWARDS, values, next: asked,
    counted, goes, gamma, gae_lambda }) };
}

export function compute(state) {
  const found = handle(state);
  const right = handle({ ...state, way: "two_masks" }).advantages;
  const wrong = found.advantages.map((each, t) => Math.abs(each - right[t]) > 1e-9);
  return { ...found, right, wrong };
}

// --- what stands where

const WAYS = ["two_masks", "flags_merged", "truncated_ignored", "ignored_after_reset",
  "value_after_reset", "nothing_after_last"];
const AFTER_RESET = ["ignored_after_reset", "value_after_reset"];
const IGNORED = ["truncated_ignored", "ignored_after_reset"];
const REWARDS = [1, 1, 1, 1, 3, 1];
const FIRST_VALUE = 5;
const WIDE = { width: 1060, height: 318 };
const LINES = ["state", "end", "future", "goes", "error", "advantage", "right"];
const ALL_ROWS = REWARDS.map((_, t) => t);
const COLUMN = 152;
const X = (t) => WIDE.width - COLUMN * (REWARDS.length - 0.5 - t) - 4;
const Y = (index) => 46 + 41 * index;
const visible = (node, shown) => put(node, { visibility: shown ? "visible" : "hidden" });

// States as boxes, steps as arrows; a state that is the start of no row is dashed.
function timeline(size) {
  const box = (x, dashed) => {
    const frame = draw("rect", { x: x - 22, y: Y(0) - 15, width: 44, height: 30, rx: 6,
      class: dashed ? "ppo-bar-old" : "ppo-bar-open" });
    const text = label({ x, y: Y(0) + size * 0.36, "text-anchor": "middle" }, "");
    return { node: draw("g", {}, frame, text), text };
  };
  const parts = ALL_ROWS.map((t) => ({
    start: box(X(t) - 52), reached: box(X(t) + 46, true),
    arrow: draw("path", { class: "ppo-ink" }),
    reward: label({ x: X(t) - 3, y: Y(0) - size * 0.45, "text-anchor": "middle" },
      `+${REWARDS[t]}`),
    reset: draw("path", { class: "ppo-mark-line", d: `M${X(t) + 76},24V${Y(1) + 18}` }),
  }));
  const nodes = parts.flatMap(({ start, reached, arrow, reward, reset }) =>
    [reset, arrow, reward, start.node, reached.node]);
  return { nodes, update(ends, values) {
    parts.forEach(({ start, reached, arrow, reset }, t) => {
      const ended = ends[t] !== "continue";
      const shown = ended || t === REWARDS.length - 1;
      const end = X(t) + (shown ? 22 : COLUMN - 76);
      write(start.text, String(values[t]));
      write(reached.text, String(values[t] + 1));
      visible(reached.node, shown);
      visible(reset, ended);
      put(arrow, { d: `M${X(t) - 28},${Y(0)}H${end}m-7,-5l7,5l-7,5` });
    });
  } };
}

function panel(shell, svg) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  put(svg, { viewBox: `0 0 ${WIDE.width} ${WIDE.height}` });
  svg.replaceChildren();
  const layer = (attributes = { "aria-hidden": "true" }) => {
    const node = draw("g", { "font-size": size, ...attributes });
    svg.append(node);
    return node;
  };
  const middle = (x, index, style = "") => label({ x, y: Y(index) + size * 0.36, class: style,
    "text-anchor": "middle" }, "");
  const rows = (index, style) => ALL_ROWS.map((t) => middle(X(t), index, style));
  const states = timeline(size);
  const names = LINES.map((key, index) => label({ x: 4, y: Y(index) + size * 0.36 },
    words[`line_${key}`]));
  const heads = ALL_ROWS.map((t) => label({ class: "ppo-heading", x: X(t) - 52, y: size * 1.1,
    "text-anchor": "middle" }, say(words, "row", { row: t })));
  const [futures, errors, rights] = [rows(2), rows(4), rows(6)];
  const advantages = rows(5, "ppo-heading");
  const lamps = ALL_ROWS.slice(1).map((t) => lamp(X(t - 1), Y(3), size));
  const flows = ALL_ROWS.slice(1).map((t) =>
    flow(X(t) - size * 2.8, X(t - 1) + size * 3.2, Y(5), size));
  const inner = draw("g", {}, ...lamps.map(({ node }) => node), ...flows.map(({ node }) => node));
  layer().append(...states.nodes, ...names, ...heads, inner, ...futures, ...errors, ...advantages,
    ...rights);
  const atX = (pixel) => (pixel + 4 - WIDE.width) / COLUMN + REWARDS.length - 0.5;
  const marks = endMarks(shell, svg, { X, atX, layer, size }, { y: Y(1), width: 132 });

  return ({ ends, gamma, revealed }, found) => {
    states.update(ends, found.values);
    marks(ends);
    put(inner, { display: revealed ? "inline" : "none" });
    const truth = handle({ ends, way: "two_masks", gamma, gae_lambda: 0 });
    ALL_ROWS.forEach((t) => {
      const off = revealed && Math.abs(found.td_errors[t] - truth.td_errors[t]) > 1e-9;
      const future = found.counted[t] ? `${written(gamma, 2)}·${found.asked[t]}` : "0";
      write(futures[t], revealed ? future + (off ? " ✕" : "") : words.hidden);
      write(errors[t], revealed ? written(found.td_errors[t], 3) : words.hidden);
      write(rights[t], revealed ? written(found.right[t], 3) : words.hidden);
      write(advantages[t], written(found.advantages[t], 3)
        + (revealed && found.wrong[t] ? " ✕" : ""));
      for (const [node, bad] of [[futures[t], off], [advantages[t], revealed && found.wrong[t]]]) {
        node.style.fill = bad ? "var(--ppo-worse)" : "";
        node.style.fontWeight = bad ? 700 : "";
      }
      if (t === REWARDS.length - 1) return;
      const leaks = found.goes[t] && ends[t] !== "continue";
      lamps[t].set(found.goes[t]);
      flows[t].set(found.goes[t] ? "flows" : "cut");
      flows[t].shaft.style.stroke = leaks ? "var(--ppo-worse)" : "";
      flows[t].shaft.style.strokeDasharray = leaks ? "5 3" : "";
    });
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status, button } = shell;
  const state = () => store.pick("ends", "way", "gamma", "gae_lambda", "revealed");
  const ways = WAYS.map((way) => [way, words[`way_${way}`]]);
  const guess = guessRows(shell, {
    question: () => words.guess, options: ways,
    answer: (said) => {
      const way = words[`way_${store.get("way")}`];
      return said === null ? say(words, "guessed_nothing", { way })
        : say(words, "guessed", { way, guess: words[`way_${said}`] });
    },
  });
  // Some other program, whose place in the list tells nothing.
  const another = button("another", () => {
    const others = WAYS.filter((way) => way !== store.get("way"));
    store.set({ way: others[Math.floor(Math.random() * others.length)] });
  });
  guess.nodes[0].append(another);
  guess.nodes[0].querySelector("select").style.width = "250px"; // the ways have long names
  const choice = choiceRow(shell, { key: "way", name: words.way, options: ways });
  const sliders = row(...["gamma", "gae_lambda"].map((key) =>
    sliderRow(shell, { key, min: 0, max: 1, step: 0.01 })));
  const svg = draw("svg", { class: "ppo-wide" });
  body.append(...guess.nodes, make("div", { style: "overflow-x: auto" },
    make("div", { class: "ppo-panels", style: "min-width: 640px" }, svg)),
  lineKey([["ppo-bar-open", words.legend_state], ["ppo-bar-old", words.legend_reached],
    ["ppo-mark-line", words.legend_reset]]), choice, sliders, status,
  make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let change;
  function rebuild() {
    change = panel(shell, svg);
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    change(now, found);
    guess.update();
    for (const node of [choice, sliders]) node.hidden = !now.revealed;
    const advantages = found.advantages.map((each) => written(each, 3)).join(", ");
    if (!now.revealed) return write(status, say(words, "sentence_hidden", { advantages }));
    const rows = ALL_ROWS.filter((t) => found.wrong[t]).map((t) =>
      say(words, "wrong_row", { row: t, right: written(found.right[t], 3) })).join(", ");
    write(status, say(words, "sentence", { way: words[`way_${now.way}`], advantages,
      belief: words[`belief_${now.way}`],
      verdict: rows ? say(words, "wrong", { rows }) : words.all_right }));
  }

  store.on(["large"], rebuild);
  store.on(["ends", "way", "gamma", "gae_lambda", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
