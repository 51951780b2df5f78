// --- numbers: held to Python's in random states

export function compute({ levers, pays, chance, baseline }) {
  const all = pays.slice(0, levers);
  const probabilities = all.map((_, lever) => (lever === 1 ? chance : (1 - chance) / (levers - 1)));
  const scores = all.map((_, lever) => (lever === 1 ? 1 : 0) - chance);
  const pushes = (b) => all.map((pay, lever) => scores[lever] * (pay - b));
  const average = (numbers) => numbers.reduce((sum, each, lever) => sum + probabilities[lever] * each, 0);
  const variance = (b) => {
    const mean = average(pushes(b));
    return average(pushes(b).map((push) => (push - mean) ** 2));
  };
  const value = average(all);
  const weights = scores.map((score) => score ** 2);
  const best = average(all.map((pay, lever) => weights[lever] * pay)) / average(weights);
  return { probabilities, pushes: pushes(baseline), mean: average(pushes(baseline)),
    variance: variance(baseline), value, best, without: variance(0), at_value: variance(value),
    at_best: variance(best) };
}

const LARGEST = 20;
const ENDS = [1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 100, 150, 200, 300, 500];
const tallest = ({ without, at_value }) =>
  ENDS.find((end) => end >= 1.25 * Math.max(without, at_value)) ?? ENDS.at(-1);
// Two digits, without the rounding noise in which Python's sums may differ.
const neat = (value) => written(Number(value.toFixed(9)), 2);
const short = (value) => neat(value).replace(/\.?0+$/, "");
const snap = (value, digits) => Number(clamp(value, -LARGEST, LARGEST).toFixed(digits));

// --- the picture

const STYLES = ["ppo-unclipped", "ppo-new", "ppo-mark-line"];
const HIGHEST = 10; // of the pushes that are drawn
const ACROSS = { x: [-LARGEST - 2, LARGEST + 2], xTicks: [-20, -10, 0, 10, 20],
  tick: (value) => String(value).replace("-", "−") };

function headed({ box, size, layer }, large) {
  const node = label({ class: "ppo-heading", x: large ? size : box.left, y: size * 1.2 }, "");
  layer().append(node);
  return node;
}

// Each lever is a straight line over b; it crosses zero where b is what the lever pays.
function pushPanel(shell, svg) {
  const { store, words } = shell;
  const large = store.get("large");
  const plot = axes(svg, { ...ACROSS, y: [-HIGHEST, HIGHEST], yTicks: [-8, -4, 0, 4, 8],
    xLabel: words.baseline_axis, yLabel: words.push_axis, title: "", large });
  const { X, Y, box, size } = plot;
  const heading = headed(plot, large);
  const here = draw("path", { class: "ppo-frame" });
  const mean = draw("path", { class: "ppo-ink", style: "stroke-width: 3" });
  const levers = Array.from({ length: store.get("levers") }, (_, lever) => lever);
  const lines = levers.map((lever) => draw("path", { class: STYLES[lever] }));
  const dots = levers.map(() => draw("circle", { class: "ppo-ink-dot", r: size / 3 }));
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    here, ...lines, mean, ...dots);
  const items = levers.map((lever) => {
    const { node, mark, set } = pointHandle({ min: -LARGEST, max: LARGEST });
    put(mark, { d: MARKS.push, "data-kind": "hidden", transform: `scale(${size / 10})` });
    node.append(label({ "text-anchor": "middle", y: size * 0.36, "font-weight": 700,
      "aria-hidden": "true" }, String(lever)));
    return {
      node, nudge: 1, get: () => store.get("pays")[lever],
      move(pay) {
        const pays = [...store.get("pays")];
        pays[lever] = snap(pay, 0);
        store.set({ pays });
      },
      update: (pay) => set({ x: X(pay), y: Y(0), value: pay,
        name: say(words, "pay", { number: lever }), text: say(words, "pay_value", { pay: short(pay) }) }),
    };
  });
  handleGroup(shell, svg, plot, { name: words.pay_group, items });
  // A line of slope -score through (pay, 0), as far as the panel shows it.
  const piece = (pay, score) => {
    const at = (push) => pay - push / score;
    const ends = [at(-HIGHEST), at(HIGHEST)].map((b) => clamp(b, -LARGEST, LARGEST));
    return line(ends.map((b) => [X(b), Y(score * (pay - b))]));
  };

  return ({ pays, chance, baseline }, numbers) => {
    write(heading, say(words, "push_title", { mean: neat(numbers.mean) }));
    levers.forEach((lever) => {
      put(lines[lever], { d: piece(pays[lever], (lever === 1 ? 1 : 0) - chance) });
      const push = numbers.pushes[lever];
      put(dots[lever], { cx: fixed(X(baseline), 2), cy: fixed(Y(clamp(push, -HIGHEST, HIGHEST)), 2),
        visibility: Math.abs(push) <= HIGHEST ? "visible" : "hidden" });
      items[lever].update(pays[lever]);
    });
    const y = Y(clamp(numbers.mean, -HIGHEST, HIGHEST));
    put(mean, { d: `M${box.left},${fixed(y, 2)}H${box.right}` });
    put(here, { d: `M${fixed(X(baseline), 2)},${box.top}V${box.bottom}` });
  };
}

// The variance over b, a parabola; where it leaves the panel, so does the diamond, with its number.
function variancePanel(shell, svg, top) {
  const { store, words } = shell;
  const large = store.get("large");
  const plot = axes(svg, { ...ACROSS, y: [-0.04 * top, top], yTicks: [0, top / 2, top],
    xLabel: words.baseline_axis, yLabel: words.variance_axis, title: "", large });
  const { X, Y, box, size } = plot;
  const heading = headed(plot, large);
  const curve = draw("path", { class: "ppo-new" });
  const marks = ["value_mark", "best_mark"].map((key) => ({
    rule: draw("path", { class: "ppo-mark-line" }), name: label({ class: "ppo-halo" }, words[key]) }));
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    curve, ...marks.flatMap(({ rule, name }) => [rule, name]));
  const { node, mark, set } = pointHandle({ min: -LARGEST, max: LARGEST });
  put(mark, { d: MARKS.hidden, "data-kind": "hidden", transform: `scale(${(size / 15) * 1.3})` });
  handleGroup(shell, svg, plot, { name: words.baseline_group, items: [{ node, nudge: 0.1,
    get: () => store.get("baseline"), move: (b) => store.set({ baseline: snap(b, 1) }) }] });
  const grid = Array.from({ length: 401 }, (_, index) => -LARGEST + index / 10);

  return ({ baseline, chance, revealed }, { variance, value, best, at_best }) => {
    const shown = revealed ? "visible" : "hidden";
    write(heading, say(words, "variance_title", { baseline: written(baseline, 1),
      variance: revealed ? neat(variance) : words.hidden }));
    const at = (b) => at_best + chance * (1 - chance) * (b - best) ** 2; // Σ π·score² = π·(1 − π)
    put(curve, { visibility: shown, d: line(grid.filter((b) => at(b) <= top)
      .map((b) => [X(b), Y(at(b))])) });
    [value, best].forEach((b, index) => {
      const { rule, name } = marks[index];
      put(rule, { visibility: shown, d: `M${fixed(X(b), 2)},${box.top}V${box.bottom}` });
      put(name, { visibility: shown, x: fixed(X(b) + (b < 14 ? 1 : -1) * size * 0.4, 2),
        y: box.top + size * (1.1 + 1.3 * index), "text-anchor": b < 14 ? "start" : "end" });
    });
    set({ x: X(baseline), y: Y(revealed ? Math.min(variance, top) : 0), name: words.baseline,
      value: baseline, text: written(baseline, 1) });
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("levers", "pays", "chance", "baseline", "revealed");
  const paid = ({ pays, levers }) => pays.slice(0, levers).map(short).join(", ");
  const told = (found) => Object.fromEntries(["mean", "variance", "value", "at_value", "best",
    "at_best"].map((key) => [key, neat(found[key])]));
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { chance: written(store.get("chance"), 2), pays: paid(state()) }),
    range: () => ({ low: -LARGEST, high: LARGEST, whole: false }),
    answer: (said) => {
      const found = told(compute(state()));
      return said === null ? say(words, "guessed_nothing", found)
        : say(words, "guessed", { ...found, guess: String(said).replace("-", "−") });
    },
  });
  const listed = make("p", { class: "ppo-tabular ppo-aside" });
  const keys = ["variance", "without", "at_value", "at_best"];
  const list = numberList(shell, keys);
  list.node.classList.add("ppo-aside");
  body.append(...guess.nodes, listed, make("div", { class: "ppo-panels" }, ...panels),
    row(sliderRow(shell, { key: "baseline", min: -LARGEST, max: LARGEST, step: 0.1, digits: 1 }),
      sliderRow(shell, { key: "chance", min: 0.02, max: 0.98, step: 0.01 }),
      choiceRow(shell, { key: "levers", name: words.levers,
        options: [[2, words.two], [3, words.three]] })),
    lineKey([...STYLES.map((style, lever) => [style, words[`legend_${lever}`]]),
      ["ppo-ink", words.legend_mean]]),
    list.node, status, make("p", { class: "ppo-soft ppo-aside" }, words.formula),
    make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let updates = [];
  let top = null;
  function rebuild() {
    top = tallest(compute(state()));
    updates = [pushPanel(shell, panels[0]), variancePanel(shell, panels[1], top)];
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    if (tallest(found) !== top) { // its handle moves b, on which the axis does not depend
      top = tallest(found);
      updates[1] = variancePanel(shell, panels[1], top);
    }
    for (const change of updates) change(now, found);
    guess.update();
    list.update(keys.map((key) => (now.revealed ? neat(found[key]) : null)));
    const levers = now.pays.slice(0, now.levers).map((pay, number) => say(words, "listed",
      { number, pay: short(pay), chance: neat(found.probabilities[number]) }));
    write(listed, say(words, "list", { levers: levers.join("; "), score: neat(1 - now.chance),
      other: neat(-now.chance) }));
    write(status, say(words, now.revealed ? "sentence" : "sentence_hidden", {
      pays: paid(now), chance: written(now.chance, 2), baseline: written(now.baseline, 1),
      ...told(found) }));
  }

  store.on(["large", "levers"], rebuild);
  store.on(["pays", "chance", "baseline", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
