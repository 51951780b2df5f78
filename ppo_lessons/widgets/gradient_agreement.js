// --- numbers: held to Python's by tests/test_widgets_browser.py

// Directions are tenths of a degree; null is a batch whose estimate is zero.
export function cosineBetween(one, two) {
  return one === null || two === null ? 0 : Math.cos(((one - two) / 10) * (Math.PI / 180));
}

export function firstReaching(cosines, sizes, target) {
  return sizes[cosines.findIndex((cosine) => cosine >= target)];
}

export function compute({ measured, situation, estimator, num_episodes, pair }) {
  const curve = measured.grid[situation][estimator];
  const at = measured.batch_sizes.indexOf(num_episodes);
  return {
    pair_cosine: cosineBetween(...curve.angles[at].slice(2 * pair, 2 * pair + 2)),
    expected_cosine: curve.cosine[at],
    enough: firstReaching(curve.cosine, measured.batch_sizes, TARGET),
    noise_scale: curve.noise_scale,
  };
}

// --- the picture

const TARGET = 0.5;
const PAIRS = 24;
const SITUATIONS = ["first", "bonus", "later"];
const ESTIMATORS = ["full_return", "reward_to_go", "baseline"];
const DASHES = { full_return: "7 5", reward_to_go: "2 4", baseline: "11 4 2 4" };

function curvePanel(shell, svg) {
  const { store, words } = shell;
  const measured = store.get("measured");
  const sizes = measured.batch_sizes;
  const plot = axes(svg, { x: [0, 8], y: [-1, 1], xTicks: [0, 2, 4, 6, 8], yTicks: [-1, -0.5, 0,
    0.5, 1], xLabel: words.size_axis, yLabel: words.cosine_axis, title: words.curve_title,
  large: store.get("large"), xTick: (value) => String(2 ** value),
  yTick: (value) => String(value).replace("-", "−") });
  const { X, Y, box, size } = plot;
  const place = (values) => values.map((value, index) => [X(Math.log2(sizes[index])), Y(value)]);
  const band = draw("path", { class: "ppo-band" });
  const curves = ESTIMATORS.map(() => draw("path", { fill: "none" }));
  const here = draw("rect", { fill: "none", stroke: "var(--ppo-ink)", "stroke-width": 2.5,
    width: size, height: size });
  const target = draw("path", { class: "ppo-frame", d: `M${box.left},${Y(TARGET)}H${box.right}` });
  const grown = draw("g", {}, band, target, ...curves, here);
  const lines = ["your_guess", "enough_mark"].map((key) => {
    const rule = draw("path", { fill: "none", stroke: "var(--ppo-ink)", "stroke-width": 2,
      "stroke-dasharray": key === "your_guess" ? "3 4" : "none" });
    const name = label({ class: "ppo-halo" }, words[key]);
    grown.append(rule, name);
    return { rule, name };
  });
  const mark = draw("path", { class: "ppo-mark", d: MARKS.hidden, "data-kind": "hidden" });
  plot.layer().append(grown, mark);

  return ({ situation, estimator, num_episodes, guess, revealed }, cosine, enough) => {
    const found = measured.grid[situation];
    put(grown, { visibility: revealed ? "visible" : "hidden" });
    const { low, high } = found[estimator];
    put(band, { d: `${line([...place(high), ...place(low).reverse()])}Z` });
    ESTIMATORS.forEach((each, index) => {
      const chosen = each === estimator;
      put(curves[index], { d: line(place(found[each].cosine)),
        class: chosen ? "ppo-new" : "ppo-unclipped" });
      curves[index].style.strokeDasharray = chosen ? "none" : DASHES[each];
    });
    const x = X(Math.log2(num_episodes));
    const at = sizes.indexOf(num_episodes);
    put(here, { x: x - size / 2, y: Y(found[estimator].cosine[at]) - size / 2 });
    [guess, enough].forEach((number, index) => {
      const { rule, name: word } = lines[index];
      const shown = revealed && number !== null;
      put(rule, { visibility: shown ? "visible" : "hidden" });
      put(word, { visibility: shown ? "visible" : "hidden" });
      if (number === null) return;
      const across = X(Math.log2(number));
      const left = across < X(6.2);
      put(rule, { d: line([[across, Y(-1)], [across, Y(TARGET)]]) });
      put(word, { x: across + (left ? 1 : -1) * size * 0.4, y: Y(-0.95 + 0.17 * index),
        "text-anchor": left ? "start" : "end" });
    });
    put(mark, { transform: `translate(${fixed(x, 2)},${fixed(Y(cosine), 2)}) scale(${size / 15})` });
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status, button } = shell;
  const numbers = () => compute(store.pick("measured", "situation", "estimator", "num_episodes",
    "pair"));
  const choose = (key, options) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options }));
  const guess = guessRows(shell, {
    question: () => words.guess,
    range: () => ({ low: 1, high: 256, whole: true }),
    answer: (said) => (said === null ? say(words, "guessed_nothing", numbers())
      : say(words, "guessed", { ...numbers(), guess: said })),
  });
  const list = numberList(shell, ["pair_cosine", "expected_cosine", "noise_scale"]);
  list.node.classList.add("ppo-aside"); // on a projector the sentence says the same
  const panels = [draw("svg"), draw("svg")];
  const again = button("another", () => store.set({ pair: (store.get("pair") + 1) % PAIRS }));
  body.append(
    row(choose("situation", SITUATIONS.map((each) => [each, words[`situation_${each}`]])),
      choose("estimator", ESTIMATORS.map((each) => [each, words[`estimator_${each}`]]))),
    ...guess.nodes, make("div", { class: "ppo-panels" }, ...panels),
    row(gridSlider(shell, { key: "num_episodes", values: store.get("measured").batch_sizes,
      text: words.num_episodes }), again), keyRow(words),
    list.node, status, make("p", { class: "ppo-soft ppo-aside" }, words.formula),
  );

  let updates = [];
  function rebuild() {
    updates = [compassPanel(shell, panels[0]), curvePanel(shell, panels[1])];
    update();
  }

  function update() {
    const state = store.pick("measured", "situation", "estimator", "num_episodes", "pair", "guess",
      "revealed");
    const { measured, situation, estimator, num_episodes: number, pair, revealed } = state;
    const found = numbers();
    const at = measured.batch_sizes.indexOf(number);
    updates[0](measured.grid[situation][estimator].angles[at], measured.grid[situation].exact, pair,
      number);
    updates[1](state, found.pair_cosine, found.enough);
    guess.update();
    list.update([written(found.pair_cosine, 2),
      revealed ? written(found.expected_cosine, 2) : null,
      revealed ? say(words, "in_episodes", { number: written(found.noise_scale, 2) }) : null]);
    const episodes = (count) => (count === 1 ? words.episode
      : say(words, "episodes", { number: count }));
    write(status, say(words, revealed ? "sentence" : "sentence_hidden", {
      situation: words[`situation_${situation}`], estimator: words[`weight_${estimator}`],
      episodes: episodes(number), cosine: written(found.expected_cosine, 2),
      pair: written(found.pair_cosine, 2), enough: episodes(found.enough),
      noise: written(found.noise_scale, 2) }));
  }

  store.on(["large"], rebuild);
  store.on(["situation", "estimator", "num_episodes", "pair", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

function keyRow(words) {
  const node = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  const piece = (text, ...marks) => node.append(make("span", { class: "ppo-key" },
    draw("svg", { class: "ppo-long", viewBox: "0 0 28 18" }, ...marks), text));
  piece(words.legend_exact, draw("path", { d: STAR, fill: "currentColor",
    transform: "translate(14,9) scale(.8)" }));
  piece(words.legend_rim, draw("path", { d: "M8,3V15M14,3V15M20,3V15", stroke: "var(--ppo-line)",
    "stroke-width": 1.6 }));
  piece(words.legend_pair, draw("path", { class: "ppo-mark", d: MARKS.hidden, "data-kind": "hidden",
    transform: "translate(14,9)" }));
  piece(words.legend_band, draw("rect", { class: "ppo-band", width: 28, height: 18 }));
  for (const each of ESTIMATORS) {
    piece(words[`estimator_${each}`], draw("path", { class: "ppo-unclipped",
      style: `stroke-dasharray: ${DASHES[each]}`, d: "M0,9H28" }));
  }
  return node;
}

export default { render };
