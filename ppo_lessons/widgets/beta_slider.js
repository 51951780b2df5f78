// --- numbers: held to Python's in random states

const BETAS = [0, 0.1, 0.2, 0.3, 1, 3];
const METRICS = ["score", "success", "kl_reference", "length"];

const percent = (share) => Math.floor(100 * share + 0.5);
const middle = (numbers) => [...numbers].sort((a, b) => a - b)[1];

export function compute({ beta, recording }) {
  const run = recording.runs[BETAS.indexOf(beta)];
  const found = {};
  for (const name of METRICS) found[name] = run[name].map((curve) => curve[curve.length - 1]);
  return { ...found, answer: percent(middle(found.success)),
    best: percent(middle(run.success.map((curve) => Math.max(...curve)))) };
}

// --- the picture: four strips, one axis of iterations

const TALL = { width: 720, height: 400 };
const STRIPS = [
  { metric: "score", y: [0, 3.2], ticks: [[0, "0"], [3, "3"]] },
  { metric: "success", y: [0, 1], ticks: [[0, "0"], [1, "1"]] },
  { metric: "kl_reference", y: [-2, 1.6], ticks: [[-2, "0.01"], [0, "1"]],
    scale: (kl) => Math.max(Math.log10(Math.max(kl, 1e-9)), -2) },
  { metric: "length", y: [0, 10.5], ticks: [[0, "0"], [10, "10"]] },
];
const DASHES = ["none", "9 4", "2 4"];

const curve = (seed) => draw("path", { class: "ppo-new", "stroke-dasharray": DASHES[seed],
  style: "fill: none" });

function stripPanel(shell, svg, iterations) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const [left, right] = [size * 3.2, TALL.width - size];
  const bottom = TALL.height - size * 2.6;
  const high = bottom / STRIPS.length;
  const last = iterations[iterations.length - 1];
  const X = (iteration) => left + ((iteration - 1) / (last - 1)) * (right - left);
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${TALL.width} ${TALL.height}` });
  svg.replaceChildren(back);
  for (const iteration of [1, 10, 20, 30, last]) {
    back.append(label({ x: X(iteration), y: bottom + size * 1.1, "text-anchor": "middle" },
      String(iteration)));
  }
  back.append(label({ x: (left + right) / 2, y: TALL.height - size * 0.3,
    "text-anchor": "middle" }, words.iteration));
  const strips = STRIPS.map(({ metric, y, ticks, scale = (value) => value }, index) => {
    const [top, low] = [index * high + size * 1.5, (index + 1) * high - size * 0.45];
    const place = (value) => low - ((value - y[0]) / (y[1] - y[0])) * (low - top);
    for (const [value, text] of ticks) {
      back.append(draw("line", { class: "ppo-grid", x1: left, x2: right, y1: place(value),
        y2: place(value) }), label({ x: left - size * 0.4, y: place(value) + size * 0.35,
        "text-anchor": "end" }, text));
    }
    const curves = DASHES.map((_, seed) => curve(seed));
    const hidden = label({ x: (left + right) / 2, y: (top + low) / 2 + size * 0.35,
      "text-anchor": "middle", class: "ppo-halo" }, words.hidden);
    back.append(draw("path", { class: "ppo-frame", d: `M${left},${top}V${low}H${right}` }),
      label({ class: "ppo-heading", x: left, y: top - size * 0.45 }, words[`strip_${metric}`]),
      ...curves, hidden);
    return { metric, curves, hidden, Y: (value) => place(scale(value)) };
  });
  return ({ beta, revealed, recording }) => {
    const run = recording.runs[BETAS.indexOf(beta)];
    for (const { metric, curves, hidden, Y } of strips) {
      const known = metric !== "success" || revealed;
      put(hidden, { visibility: known ? "hidden" : "visible" });
      curves.forEach((path, seed) => put(path, { visibility: known ? "visible" : "hidden",
        d: line(run[metric][seed].map((value, at) => [X(iterations[at]), Y(value)])) }));
    }
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("beta", "recording", "revealed");
  const panel = draw("svg");
  const shownBeta = () => written(store.get("beta"), 1);
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { beta: shownBeta() }),
    range: () => ({ low: 0, high: 100, whole: true }),
    answer: (said) => {
      const { answer } = compute(state());
      return say(words, said === null ? "guessed_nothing" : "guessed", { answer, guess: said });
    },
  });
  const key = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  DASHES.forEach((_, seed) => {
    const path = curve(seed);
    put(path, { d: "M0,9H28" });
    key.append(make("span", { class: "ppo-key" },
      draw("svg", { class: "ppo-long", viewBox: "0 0 28 18" }, path), words[`legend_${seed}`]));
  });
  body.append(
    row(gridSlider(shell, { key: "beta", values: BETAS, text: words.beta,
      show: (value) => written(value, 1) })),
    ...guess.nodes, make("div", { class: "ppo-panels" }, panel), key, status,
    make("p", { class: "ppo-soft ppo-aside" }, words.about),
  );

  let change = () => {};
  function rebuild() {
    change = stripPanel(shell, panel, store.get("recording").iterations);
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    change(now);
    guess.update();
    const at = (name) => written(middle(found[name]), 1);
    write(status, say(words, now.revealed ? "sentence" : "sentence_hidden", { beta: shownBeta(),
      score: at("score"), kl: at("kl_reference"), length: at("length"), answer: found.answer,
      best: found.best }));
  }

  store.on(["large"], rebuild);
  store.on(["beta", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
