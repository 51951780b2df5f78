// --- numbers: held to Python's in random states

export function compute({ rewards, values, reached, ends, gamma, gae_lambda }) {
  const last = rewards.length - 1;
  const goes = ends.map((end, t) => end === "continue" && t < last);
  const next_values = values.map((_, t) => (goes[t] ? values[t + 1] : reached[t]));
  const counted = ends.map((end) => end !== "terminated");
  return { ...backwards({ rewards, values, next: next_values, counted, goes, gamma, gae_lambda }),
    next_values, counted, goes };
}

// --- what stands where

const ROWS = 6;
const SPAN = [-1.15, ROWS - 0.45]; // the names of the lines stand before row 0
const [LOWEST, HIGHEST] = [-2, 8];
const TABLE = { width: 1060, height: 210 };
const STRIP = { width: 1060, height: 205 };
const HALF = "max-height: max(150px, 50vh - 6.4em)"; // two such panels stand one over the other
const ALL_ROWS = Array.from({ length: ROWS }, (_, t) => t);
const KINDS = [["rewards", -0.27, "ppo-bar-new", LOWEST], ["values", 0, "ppo-bar-open", 0],
  ["reached", 0.27, "ppo-bar-old", 0]];
const snap = (value, low) => clamp(Math.round(value * 2) / 2, low, HIGHEST);

// The facts, which a hand drags: reward, V(s_t), and V of the state that was reached where no row
// shows it.
function tablePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: SPAN, y: [LOWEST, HIGHEST], xTicks: ALL_ROWS, yTicks: [-2, 0, 2, 4, 6, 8],
    xTick: (t) => say(words, "row", { row: t }), xGrid: false, yTick: (value) => String(value).replace("-", "−"), xLabel: "", yLabel: words.value_axis,
    title: words.table_title, panel: TABLE, large: store.get("large") });
  const { X, Y, box, size } = plot;
  const back = plot.layer();
  const { goes } = compute(store.pick("rewards", "values", "reached", "ends", "gamma", "gae_lambda"));
  const bars = [];
  const items = ALL_ROWS.flatMap((t) => KINDS.flatMap(([key, aside, style, low]) => {
    if (key === "reached" && goes[t]) return [];
    const [at, width] = [t + aside, 0.22];
    const { node, set } = barHandle(plot, { min: low, max: HIGHEST, at, width });
    const bar = draw("rect", { class: style });
    bars.push(bar);
    const get = () => store.get(key)[t];
    return [{ node, nudge: 0.5, at: () => at, get,
      move(value) {
        const changed = [...store.get(key)];
        changed[t] = snap(value, low);
        store.set({ [key]: changed });
      },
      update() {
        setBar(plot, bar, { at, width, to: get() });
        set({ value: get(), name: say(words, `handle_${key}`, { row: t }),
          text: written(get(), 1) });
      } }];
  }));
  back.append(draw("path", { class: "ppo-frame", d: `M${X(-0.5)},${Y(0)}H${box.right}` }), ...bars);
  put(svg, { viewBox: `0 0 ${TABLE.width} ${TABLE.height - size * 1.6}` }); // no name of an axis below
  handleGroup(shell, svg, plot, { name: words.facts_group, items, along: "y" });
  return () => items.forEach((item) => item.update());
}

// How each step ended, both lamps, and what the scan has found so far.
function stripPanel(shell, svg) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const [left, right] = [size * 4.2, STRIP.width - size * 1.1]; // as in the table above
  const X = (t) => left + ((t - SPAN[0]) / (SPAN[1] - SPAN[0])) * (right - left);
  const Y = (index) => STRIP.height * (0.11 + 0.195 * index);
  put(svg, { viewBox: `0 0 ${STRIP.width} ${STRIP.height}` });
  svg.replaceChildren();
  const layer = (attributes = { "aria-hidden": "true" }) => {
    const node = draw("g", { "font-size": size, ...attributes });
    svg.append(node);
    return node;
  };
  const atX = (pixel) => SPAN[0] + ((pixel - left) / (right - left)) * (SPAN[1] - SPAN[0]);
  const back = layer();
  const middle = (t, index, style = "") => label({ x: X(t), y: Y(index) + size * 0.36, class: style,
    "text-anchor": "middle" }, "");
  const here = draw("rect", { class: "ppo-band", y: 0, height: STRIP.height, rx: 4,
    width: X(0.49) - X(-0.49) });
  const errors = ALL_ROWS.map((t) => middle(t, 3));
  const advantages = ALL_ROWS.map((t) => middle(t, 4, "ppo-heading"));
  const lamps = ALL_ROWS.map((t) => [1, 2].map((index) => lamp(X(t), Y(index), size)));
  const flows = ALL_ROWS.slice(1).map((t) =>
    flow(X(t) - size * 2.4, X(t - 1) + size * 2.6, Y(4), size));
  const names = ["end", "counted", "goes", "error", "advantage"].map((key, index) =>
    label({ x: size * 0.4, y: Y(index) + size * 0.36 }, words[`line_${key}`]));
  back.append(here, ...names, ...errors, ...advantages, ...lamps.flat().map(({ node }) => node),
    ...flows.map(({ node }) => node));
  const marks = endMarks(shell, svg, { X, atX, layer, size },
    { y: Y(0), width: X(0.46) - X(-0.46) });

  return ({ ends, step, revealed }, found) => {
    marks(ends);
    const first = ROWS - step; // rows from here on are done
    put(here, { x: fixed(X(Math.min(first, ROWS - 1) - 0.49), 2),
      visibility: step ? "visible" : "hidden" });
    ALL_ROWS.forEach((t) => {
      const done = t >= first && (t > 0 || revealed);
      lamps[t][0].set(found.counted[t]);
      lamps[t][1].set(t === ROWS - 1 ? null : found.goes[t]);
      write(errors[t], done ? written(found.td_errors[t], 3) : "·");
      write(advantages[t], done ? written(found.advantages[t], 3)
        : t >= first ? words.hidden : "·");
      if (t < ROWS - 1) flows[t].set(t < first ? "" : found.goes[t] ? "flows" : "cut");
    });
  };
}

// --- the whole

function sentenceOf(words, { rewards, values, ends, gamma, gae_lambda, step, revealed }, found) {
  const signed = (value) => (value < 0 ? `(${written(value, 3)})` : written(value, 3));
  const t = ROWS - step;
  if (step === 0) return say(words, "sentence_none", { gamma: written(gamma, 2),
    weight: written(gae_lambda, 2) });
  const facts = { row: t, next: t + 1, reward: written(rewards[t], 1), value: written(values[t], 1),
    gamma: written(gamma, 2), future: written(found.next_values[t], 1) };
  if (t === 0 && !revealed) return say(words, "sentence_hidden", { ...facts,
    end: words[`end_${ends[0]}`], following: signed(found.advantages[1]),
    weight: written(gae_lambda, 2) });
  const error = say(words, found.counted[t] ? "td_future" : "td_over", { ...facts,
    error: written(found.td_errors[t], 3) });
  const end = t === ROWS - 1 && ends[t] === "continue" ? "last" : ends[t];
  const advantage = say(words, found.goes[t] ? "sum_goes" : "sum_cut", { row: t, next: t + 1,
    error: signed(found.td_errors[t]), carried: written(gamma * gae_lambda, 3),
    following: found.goes[t] ? signed(found.advantages[t + 1]) : "", why: words[`why_${end}`],
    advantage: written(found.advantages[t], 3) });
  return `${error} ${advantage}`;
}

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("rewards", "values", "reached", "ends", "gamma", "gae_lambda",
    "step", "revealed");
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { gamma: written(store.get("gamma"), 2),
      weight: written(store.get("gae_lambda"), 2) }),
    range: () => ({ low: -60, high: 60, whole: false }),
    answer: (said) => {
      const first = written(compute(state()).advantages[0], 3);
      return said === null ? say(words, "guessed_nothing", { first })
        : say(words, "guessed", { first, guess: String(said).replace("-", "−") });
    },
  });
  const scan = playRow(shell, { last: () => ROWS, ms: () => 700 });
  const more = row(sliderRow(shell, { key: "gamma", min: 0, max: 1, step: 0.01 }),
    sliderRow(shell, { key: "gae_lambda", min: 0, max: 1, step: 0.01 }));
  const panels = [0, 1].map(() => draw("svg", { class: "ppo-wide", style: HALF }));
  body.append(...guess.nodes, make("div", { style: "overflow-x: auto" },
    make("div", { class: "ppo-panels", style: "min-width: 640px" }, ...panels)),
  lineKey(KINDS.map(([key, , style]) => [style, words[`legend_${key}`]])), row(scan.node, more), status, make("p", { class: "ppo-soft ppo-aside" }, words.formula),
    make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let table, strip, kinds;
  const drawn = () => String(store.get("ends"));
  function rebuild() {
    strip = stripPanel(shell, panels[1]);
    kinds = null;
    update();
  }

  function update() {
    if (drawn() !== kinds) { // another kind of end: other values are asked for
      kinds = drawn();
      table = tablePanel(shell, panels[0]);
    }
    const now = state();
    const found = compute(now);
    table();
    strip(now, found);
    scan.update();
    guess.update();
    more.hidden = !now.revealed;
    write(status, sentenceOf(words, now, found));
  }

  store.on(["large"], rebuild);
  store.on(["rewards", "values", "reached", "ends", "gamma", "gae_lambda", "step", "guess",
    "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
