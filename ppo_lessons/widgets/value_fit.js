// --- numbers: held to Python's in random states

const average = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
const spread = (numbers) => {
  const mean = average(numbers);
  return average(numbers.map((each) => (each - mean) ** 2));
};

// What the critic says of each sample, and the two targets.
export function critic({ shift, scale, noise, samples }) {
  const { centre } = samples;
  const says = (values, wrong) => values.map((value, index) =>
    centre + shift + scale * (value - centre) + noise * wrong[index]);
  const following = says(samples.next_values, samples.next_noise);
  const own = samples.rewards.map((reward, index) =>
    reward + (samples.last[index] ? 0 : following[index]));
  return { values: says(samples.values, samples.noise), returns: samples.returns, own };
}

export function compute(state) {
  const said = critic(state);
  const errors = (targets) => targets.map((target, index) => target - said.values[index]);
  const grade = (targets) => 1 - spread(errors(targets)) / spread(targets);
  const loss = (targets) => average(errors(targets).map((error) => error ** 2)) / 2;
  return { ev_monte_carlo: grade(said.returns), loss_monte_carlo: loss(said.returns),
    ev_own: grade(said.own), loss_own: loss(said.own), mean_error: average(errors(said[state.target])) };
}

// Two digits, without the rounding noise in which Python's sums may differ.
const neat = (value) => written(Number(value.toFixed(9)), 2);

// --- the picture

const FAULTS = ["shift", "scale", "noise"];
const [LOW, HIGH] = [-15, 30];
const FARTHEST = 21; // errors are counted in bins two wide, whose middles are even
const MIDDLES = Array.from({ length: FARTHEST }, (_, index) => 2 * index - FARTHEST + 1);
const MOST = 100;
const tick = (value) => String(value).replace("-", "−");

function scatterPanel(shell, svg) {
  const { store, words } = shell;
  const own = store.get("target") === "own";
  const ticks = [-10, 0, 10, 20, 30];
  const plot = axes(svg, { x: [LOW, HIGH], y: [LOW, HIGH], xTicks: ticks, yTicks: ticks, tick,
    xLabel: words.value_axis, yLabel: own ? words.own_axis : words.returns_axis,
    title: words.scatter_title, large: store.get("large") });
  const { X, Y, size } = plot;
  const dots = store.get("samples").values.map(() => draw("circle", { r: size / 4,
    fill: "none", stroke: "var(--ppo-new)", "stroke-width": 1.3 }));
  plot.layer().append(draw("path", { class: "ppo-unclipped",
    d: line([[X(LOW), Y(LOW)], [X(HIGH), Y(HIGH)]]) }), ...dots);
  return (values, targets) => dots.forEach((dot, index) => put(dot, {
    cx: fixed(X(clamp(values[index], LOW, HIGH)), 1),
    cy: fixed(Y(clamp(targets[index], LOW, HIGH)), 1) }));
}

// How many errors fall into each bin; those beyond the panel into the outermost.
export function counted(errors) {
  const counts = MIDDLES.map(() => 0);
  for (const error of errors) {
    counts[clamp(Math.floor((error + FARTHEST) / 2), 0, counts.length - 1)] += 1;
  }
  return counts;
}

function errorPanel(shell, svg) {
  const { store, words } = shell;
  const large = store.get("large");
  const plot = axes(svg, { x: [-FARTHEST, FARTHEST], y: [0, MOST], xTicks: [-16, -8, 0, 8, 16],
    yTicks: [0, 50, 100], tick, xLabel: words.error_axis, yLabel: words.count_axis, title: "", large });
  const { X, Y, box, size } = plot;
  const heading = label({ class: "ppo-heading", x: large ? size : box.left, y: size * 1.2 }, "");
  const bars = MIDDLES.map(() => draw("rect", { class: "ppo-bar-new" }));
  const constant = draw("path", { class: "ppo-bar-old" });
  const mean = draw("path", { class: "ppo-mark-line" });
  plot.layer().append(heading, ...bars, draw("path", { class: "ppo-frame",
    d: `M${X(0)},${box.top}V${box.bottom}` }), constant, mean);
  return (values, targets, { revealed, target }, found) => {
    const own = target === "own";
    const shown = (number) => (revealed ? neat(number) : words.hidden);
    write(heading, say(words, "error_title", { ev: shown(own ? found.ev_own : found.ev_monte_carlo),
      loss: shown(own ? found.loss_own : found.loss_monte_carlo) }));
    const counts = counted(targets.map((each, index) => each - values[index]));
    bars.forEach((bar, index) => setBar(plot, bar, { at: MIDDLES[index], width: 1.6,
      to: revealed ? Math.min(counts[index], MOST) : 0 }));
    const centre = average(targets);
    const steps = counted(targets.map((each) => each - centre)).flatMap((count, index) =>
      [-1, 1].map((side) => [X(MIDDLES[index] + side), Y(count)]));
    put(constant, { visibility: revealed ? "visible" : "hidden", d: line(steps) });
    const at = fixed(X(clamp(found.mean_error, -FARTHEST, FARTHEST)), 2);
    put(mean, { visibility: revealed ? "visible" : "hidden", d: `M${at},${box.top}V${box.bottom}` });
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => words.guess,
    options: FAULTS.map((fault) => [fault, words[fault]]),
    answer: (said) => (said === null ? words.guessed_nothing
      : say(words, "guessed", { guess: words[said] })),
  });
  const keys = ["ev_monte_carlo", "loss_monte_carlo", "ev_own", "loss_own", "mean_error"];
  const list = numberList(shell, keys);
  list.node.classList.add("ppo-aside");
  const choice = row(make("span", { class: "ppo-soft", "aria-hidden": "true" }, words.target),
    choiceRow(shell, { key: "target", name: words.target,
      options: [["returns", words.target_returns], ["own", words.target_own]] }));
  const slider = (key, min, max, step) => sliderRow(shell, { key, min, max, step, digits: 1 });
  body.append(...guess.nodes, make("div", { class: "ppo-panels" }, ...panels),
    row(slider("shift", -10, 10, 0.5), slider("scale", -1, 3, 0.1), slider("noise", 0, 6, 0.5)),
    choice,
    lineKey([["ppo-unclipped", words.legend_diagonal], ["ppo-bar-new", words.legend_errors],
      ["ppo-bar-old", words.legend_constant], ["ppo-mark-line", words.legend_mean]]),
    list.node, status, make("p", { class: "ppo-soft ppo-aside" }, words.formula),
    make("p", { class: "ppo-soft ppo-aside" }, words.about));

  let updates = [];
  function rebuild() {
    updates = [scatterPanel(shell, panels[0]), errorPanel(shell, panels[1])];
    update();
  }

  function update() {
    const state = store.pick("shift", "scale", "noise", "target", "samples", "revealed");
    const [said, found] = [critic(state), compute(state)];
    for (const change of updates) change(said.values, said[state.target], state, found);
    guess.update();
    choice.hidden = !state.revealed;
    list.update(keys.map((key) => (state.revealed ? neat(found[key]) : null)));
    write(status, say(words, state.revealed ? "sentence" : "sentence_hidden", {
      ...Object.fromEntries(FAULTS.map((fault) => [fault, written(state[fault], 1)])),
      ev: neat(found.ev_monte_carlo), loss: neat(found.loss_monte_carlo), ev_own: neat(found.ev_own),
      loss_own: neat(found.loss_own), drawn: words[`drawn_${state.target}`] }));
  }

  store.on(["large", "target"], rebuild);
  store.on(["shift", "scale", "noise", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
