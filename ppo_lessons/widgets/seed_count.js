// --- numbers: held to Python's in random states

const NAMES = ["clip 0.2", "clip 0.1", "clip 0.3", "no clip", "fixed penalty", "λ = 1"];
const NUM_SEEDS = [3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const DRAWS = [1, 2, 3, 4, 5, 6, 7, 8];
const VERDICTS = ["above", "below", "inconclusive"];

const average = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

// The mean of the middle half.
function interquartileMean(runs) {
  const ordered = [...runs].sort((a, b) => a - b);
  const leftOut = Math.floor(runs.length / 4);
  return average(ordered.slice(leftOut, runs.length - leftOut));
}

function apart([low, high], [otherLow, otherHigh]) {
  if (low > otherHigh) return "above";
  return high < otherLow ? "below" : "inconclusive";
}

// Of all pairs, how many the first wins; a tie is half of one.
function improvementOf(first, second) {
  return average(first.map((x) => average(second.map((y) => (x > y ? 1 : x === y ? 0.5 : 0)))));
}

export function compute({ first, second, num_seeds, draw: drawn, recording }) {
  const order = recording.orders[drawn - 1];
  const sides = [first, second].map((name) => NAMES.indexOf(name));
  const [firstScores, secondScores] = sides.map((setting, side) =>
    (side ? [...order].reverse() : order).slice(0, num_seeds)
      .map((place) => recording.scores[setting][place]));
  const curvesOf = (each) => sides.map((setting, side) => recording.intervals[setting][side][each]);
  const curves = curvesOf(drawn - 1);
  const now = NUM_SEEDS.indexOf(num_seeds);
  const said = DRAWS.map((each) => apart(...curvesOf(each - 1).map((curve) => curve[now])));
  return {
    first_scores: firstScores, second_scores: secondScores,
    first_iqm: interquartileMean(firstScores), second_iqm: interquartileMean(secondScores),
    first_interval: curves[0][now], second_interval: curves[1][now],
    verdict: apart(curves[0][now], curves[1][now]),
    improvement: improvementOf(firstScores, secondScores),
    tally: VERDICTS.map((verdict) => said.filter((each) => each === verdict).length), curves,
  };
}

// --- the picture

const LOW = { width: 520, height: 304 }; // four rows of controls stand above
const MOST = 500; // the largest return of CartPole
const TICKS = [0, 100, 200, 300, 400, 500];
const LOOKS = [ // filled circles and thick bars; open diamonds and thin bars with ends
  { kind: "push", fill: "var(--ppo-new)", stroke: "var(--ppo-new)", width: 6, cap: 0 },
  { kind: "hidden", fill: "none", stroke: "var(--ppo-worse)", width: 2, cap: 5 },
];

const bar = (look) => draw("path", { fill: "none", stroke: look.stroke, "stroke-width": look.width });

// From the lower end to the upper one, with its ends across.
function barAt(look, x, low, high) {
  const across = (y) => line([[x - look.cap, y], [x + look.cap, y]]);
  return line([[x, low], [x, high]]) + (look.cap ? across(low) + across(high) : "");
}

function scorePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: [-0.5, 1.6], y: [0, MOST * 1.04], xTicks: [0, 1], yTicks: TICKS,
    xGrid: false, xTick: (side) => say(words, side ? "side_second" : "side_first",
      { setting: store.get(side ? "second" : "first") }),
    xLabel: "", yLabel: words.score_axis, title: words.scores_title, large: store.get("large"),
    panel: LOW });
  const { X, Y, size } = plot;
  const sides = LOOKS.map((look) => ({
    dots: Array.from({ length: 64 }, () => draw("path", { d: MARKS[look.kind], fill: look.fill,
      stroke: look.stroke, "stroke-width": 2.5,
      "fill-opacity": 0.75 })),
    interval: bar(look),
    middle: draw("path", { class: "ppo-mark", d: MARKS[look.kind], fill: "var(--ppo-paper)" }),
  }));
  const layer = plot.layer();
  for (const { dots, interval, middle } of sides) layer.append(...dots, interval, middle);
  return ({ revealed }, found) => sides.forEach(({ dots, interval, middle }, side) => {
    const runs = side ? found.second_scores : found.first_scores;
    const [low, high] = side ? found.second_interval : found.first_interval;
    dots.forEach((dot, place) => put(dot, { visibility: place < runs.length ? "visible" : "hidden",
      transform: `translate(${fixed(X(side - 0.3 + 0.6 * (place + 0.5) / runs.length), 2)},${
        fixed(Y(runs[place] ?? 0), 2)}) scale(${size / 30})` }));
    const shown = { visibility: revealed ? "visible" : "hidden" };
    put(interval, { ...shown, d: barAt(LOOKS[side], X(side + 0.42), Y(low), Y(high)) });
    put(middle, { ...shown, transform: `translate(${fixed(X(side + 0.42), 2)},${
      fixed(Y(side ? found.second_iqm : found.first_iqm), 2)}) scale(${size / 18})` });
  });
}

function curvePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: [-0.5, NUM_SEEDS.length - 0.5], y: [0, MOST * 1.04],
    xTicks: NUM_SEEDS.map((_, place) => place), yTicks: TICKS, xGrid: false,
    xTick: (place) => String(NUM_SEEDS[place]), yTick: String, xLabel: words.count_axis,
    yLabel: words.score_axis, title: words.curve_title, large: store.get("large"), panel: LOW });
  const { X, Y, box } = plot;
  const here = draw("path", { class: "ppo-mark-line" });
  const bars = LOOKS.map((look) => NUM_SEEDS.map(() => bar(look)));
  plot.layer().append(here, ...bars.flat());
  return ({ revealed, num_seeds }, { curves }) => {
    const now = NUM_SEEDS.indexOf(num_seeds);
    put(here, { d: `M${fixed(X(now), 2)},${box.top}V${box.bottom}` });
    bars.forEach((row_, side) => row_.forEach((node, place) => {
      const at = X(place + (side ? 0.14 : -0.14));
      const [low, high] = curves[side][place];
      put(node, { visibility: revealed ? "visible" : "hidden",
        d: barAt(LOOKS[side], at, Y(low), Y(high)) });
    }));
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const keys = ["first", "second", "num_seeds", "draw"];
  const state = () => store.pick(...keys, "recording", "revealed");
  const panels = [draw("svg"), draw("svg")];
  const verdict = () => words[`verdict_${compute(state()).verdict}`];
  const guess = guessRows(shell, {
    question: () => say(words, "guess", store.pick("num_seeds", "first", "second")),
    options: VERDICTS.map((name) => [name, words[name]]),
    answer: (said) => (said === null ? say(words, "guessed_nothing", { verdict: verdict() })
      : say(words, "guessed", { verdict: verdict(), guess: words[said] })),
  });
  const choose = (key) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" }, words[key]),
    choiceRow(shell, { key, name: words[key], options: NAMES.map((name) => [name, name]) }));
  const slide = (key, values) => gridSlider(shell, { key, values, text: words[key], width: 150 });
  const list = numberList(shell, ["first_iqm", "second_iqm", "improvement", "tally"]);
  list.node.classList.add("ppo-aside");
  body.append(...guess.nodes, choose("first"), choose("second"),
    row(slide("num_seeds", NUM_SEEDS), slide("draw", DRAWS)),
    make("div", { class: "ppo-panels" }, ...panels),
    row(markKey(LOOKS.map((look, side) => [look.kind, words[side ? "legend_second" : "legend_first"]])),
      lineKey([["ppo-mark-line", words.legend_now]])),
    list.node, status, make("p", { class: "ppo-soft ppo-aside" }, words.about));

  let updates = [];
  function rebuild() {
    updates = [scorePanel(shell, panels[0]), curvePanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    for (const change of updates) change(now, found);
    guess.update();
    const [above, below, open] = found.tally;
    const hide = (text) => (now.revealed ? text : null);
    list.update([hide(written(found.first_iqm, 1)), hide(written(found.second_iqm, 1)),
      hide(written(found.improvement, 2)), hide(say(words, "three_numbers", { above, below, open }))]);
    const between = ([low, high]) => say(words, "between",
      { low: written(low, 0), high: written(high, 0) });
    write(status, say(words, now.revealed ? "sentence" : "sentence_hidden", { ...now, above, below,
      open, first_interval: between(found.first_interval),
      second_interval: between(found.second_interval), verdict: words[`verdict_${found.verdict}`] }));
  }

  store.on(["large", "first", "second"], rebuild);
  store.on(["num_seeds", "draw", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
