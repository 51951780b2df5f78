// --- numbers: held to Python's in random states

const NUM_ENVS = Array.from({ length: 14 }, (_, power) => 2 ** (power + 3));
const LIMITS = ["arithmetic", "memory", "launches"];
const ROWS = ["collect", "score", "squeeze", "all"];

// FLOPs, bytes and launches of an iteration, by stage.
function workOf(state, num_envs) {
  const { num_steps, num_epochs, num_minibatches, hidden, recording } = state;
  const { launches, widths } = recording;
  const width = widths[hidden];
  const samples = num_steps * num_envs;
  const uses = [samples, samples, samples * num_epochs];
  const passes = [num_steps, 1, num_epochs * num_minibatches];
  return {
    flops: uses.map((use, stage) => use * width.flops[stage]),
    bytes: uses.map((use, stage) => use * width.bytes[stage]
      + passes[stage] * width.bytes_of_weights[stage]),
    launches: [launches.collect[num_steps], launches.score[num_steps],
      launches.squeeze + num_epochs * (launches.epoch + num_minibatches * launches.minibatch)],
  };
}

const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);

// Least µs for each environment step: stages, then all; arithmetic, memory, launches.
function leastTimes(state, num_envs) {
  const machine = state.recording.machines[state.device];
  const launch = machine.seconds_per_launch ?? state.launch_us / 1e6;
  const work = workOf(state, num_envs);
  const samples = state.num_steps * num_envs;
  const rows = [0, 1, 2].map((stage) => [
    1e6 * work.flops[stage] / machine.flops_per_second / samples,
    1e6 * work.bytes[stage] / machine.bytes_per_second / samples,
    1e6 * work.launches[stage] * launch / samples,
  ]);
  return [...rows, [0, 1, 2].map((limit) => sum(rows.map((row) => row[limit])))];
}

function megabytesOf({ num_envs, num_steps, num_minibatches, hidden, recording }) {
  const samples = num_steps * num_envs;
  const minibatch = Math.ceil(samples / num_minibatches);
  const score = samples * (8 * hidden + 8);
  const squeeze = minibatch * (recording.learned + 2 * (8 * hidden + 4) + 8 * hidden);
  return (samples * recording.stays + Math.max(score, squeeze)) / 1e6;
}

export function compute(state) {
  const { num_envs, num_steps } = state;
  const work = workOf(state, num_envs);
  const micros = leastTimes(state, num_envs);
  const most = Math.max(...micros[3]);
  return {
    flops: sum(work.flops), launches: sum(work.launches),
    flops_per_step: Math.floor(sum(work.flops) / (num_steps * num_envs)), micros,
    binds: LIMITS[micros[3].indexOf(most)], steps_per_second: 1e6 / most,
    megabytes: megabytesOf(state),
    curve: NUM_ENVS.map((each) => leastTimes(state, each)[3].map((time) => 1e6 / time)),
  };
}

// --- the picture

const LOW = { width: 520, height: 308 }; // two rows of controls stand above
const KINDS = ["back", "hidden", "push"]; // marks of arithmetic, memory, launches
const LINES = ["ppo-ink", "ppo-unclipped", "ppo-new"];
const TENS = { [-4]: "0.0001", [-2]: "0.01", 0: "1", 2: "100", 4: "10⁴", 6: "10⁶", 8: "10⁸", 10: "10¹⁰" };
const tens = (exponent) => TENS[exponent];

function stagePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: [-5, 4], y: [3.4, -0.8], xTicks: [-4, -2, 0, 2, 4],
    yTicks: [0, 1, 2, 3], xTick: tens, yTick: () => "", xLabel: words.micros_axis, yLabel: "",
    title: words.stages_title, large: store.get("large"), panel: LOW });
  const { X, Y, box, size } = plot;
  const layer = plot.layer();
  layer.append(...ROWS.map((name, row) => label({ x: box.left - size * 0.4, "text-anchor": "start",
    y: fixed(Y(row) - size * 0.6, 2), dx: size * 0.7 }, words[`stage_${name}`])));
  const marks = ROWS.map((_, row) => KINDS.map((kind) => {
    const mark = draw("path", { class: "ppo-mark", d: MARKS[kind], "data-kind": kind });
    layer.append(mark);
    return { mark, row };
  }));
  return ({ revealed }, { micros }) => marks.forEach((each, row) =>
    each.forEach(({ mark }, limit) => {
      const x = clamp(X(Math.log10(micros[row][limit])), box.left, box.right);
      put(mark, { transform: `translate(${fixed(x, 2)},${fixed(Y(row), 2)}) scale(${size / 15})`,
        visibility: revealed ? "visible" : "hidden" });
    }));
}

function ratePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: [3, 16], y: [2, 10], xTicks: [3, 6, 9, 12, 15],
    yTicks: [2, 4, 6, 8, 10], xTick: (exponent) => String(2 ** exponent), yTick: tens,
    xLabel: words.env_axis, yLabel: words.rate_axis, title: words.rate_title,
    large: store.get("large"), panel: LOW });
  const { X, Y, box, size } = plot;
  const lines = LINES.map((look) => draw("path", { class: look }));
  const dots = LINES.map(() => draw("circle", { r: size / 3.4, class: "ppo-ink-dot" }));
  const here = draw("path", { class: "ppo-mark-line" });
  const shown = draw("g", {}, ...lines, here, ...dots);
  plot.layer().append(shown);
  const at = (rate) => clamp(Y(Math.log10(rate)), box.top, box.bottom);
  return ({ revealed, num_envs }, { curve }) => {
    put(shown, { visibility: revealed ? "visible" : "hidden" });
    const now = NUM_ENVS.indexOf(num_envs);
    put(here, { d: `M${fixed(X(now + 3), 2)},${box.top}V${box.bottom}` });
    lines.forEach((path, limit) => put(path, {
      d: line(curve.map((rates, index) => [X(index + 3), at(rates[limit])])) }));
    dots.forEach((dot, limit) => put(dot, { cx: fixed(X(now + 3), 2),
      cy: fixed(at(curve[now][limit]), 2) }));
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const sizes = ["num_envs", "num_steps", "num_epochs", "num_minibatches", "hidden"];
  const state = () => store.pick(...sizes, "device", "launch_us", "recording", "revealed");
  const panels = [draw("svg"), draw("svg")];
  const large = (number) => (number >= 1e6
    ? say(words, "million", { number: written(number / 1e6, 1) })
    : say(words, "thousand", { number: written(number / 1e3, 1) }));
  const machine = () => words[`device_${store.get("device")}`];
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { ...store.pick(...sizes), machine: machine() }),
    options: LIMITS.map((name) => [name, words[`short_${name}`]]),
    answer: (said) => {
      const binds = words[`limit_${compute(state()).binds}`];
      return said === null ? say(words, "guessed_nothing", { binds })
        : say(words, "guessed", { binds, guess: words[`short_${said}`] });
    },
  });
  const slide = (key, values) => gridSlider(shell, { key, values, text: words[key], width: 76 });
  const choose = (key, options) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options }));
  const launch = choose("launch_us", [1.5, 5, 10].map((each) => [each, String(each)]));
  const list = numberList(shell, ["flops_per_step", "launches", "megabytes", "steps_per_second"]);
  list.node.classList.add("ppo-aside");
  body.append(...guess.nodes,
    row(slide("num_envs", NUM_ENVS), slide("num_steps", [16, 32, 64, 128]),
      slide("num_epochs", [1, 2, 3, 4, 5, 6, 7, 8]),
      slide("num_minibatches", [1, 2, 4, 8, 16, 32]), slide("hidden", [32, 64, 128, 256, 512])),
    row(choose("device", ["core", "t4", "h200"].map((name) => [name, words[`choice_${name}`]])),
      launch),
    make("div", { class: "ppo-panels" }, ...panels),
    row(markKey(LIMITS.map((name, limit) => [KINDS[limit], words[`short_${name}`]])),
      lineKey([...LIMITS.map((name, limit) => [LINES[limit], words[`short_${name}`]]),
        ["ppo-mark-line", words.legend_now]])),
    list.node, status, make("p", { class: "ppo-soft ppo-aside" }, words.about));

  let updates = [];
  function rebuild() {
    updates = [stagePanel(shell, panels[0]), ratePanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    for (const change of updates) change(now, found);
    guess.update();
    for (const node of launch.querySelectorAll("button")) node.disabled = now.device === "core";
    const hide = (text) => (now.revealed ? text : null);
    list.update([large(found.flops_per_step), String(found.launches), written(found.megabytes, 1),
      hide(large(found.steps_per_second))]);
    write(status, say(words, now.revealed ? "sentence" : "sentence_hidden", { ...now,
      machine: machine(), binds: words[`limit_${found.binds}`], rate: large(found.steps_per_second),
      cost: large(found.flops_per_step), megabytes: written(found.megabytes, 1) }));
  }

  store.on(["large"], rebuild);
  store.on([...sizes, "device", "launch_us", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
