// --- numbers: held to Python's by tests/fixtures/clip_region.json

export function clipObjective(ratio, advantage, epsilon) {
  return Math.min(ratio * advantage, clamp(ratio, 1 - epsilon, 1 + epsilon) * advantage);
}

export function isOutside(ratio, epsilon) {
  return ratio > 1 + epsilon || ratio < 1 - epsilon;
}

export function stillPushes(ratio, advantage, epsilon) {
  return advantage > 0 ? ratio <= 1 + epsilon : ratio >= 1 - epsilon;
}

export function summarize(ratios, advantages, epsilon) {
  let [outside, silent, sum] = [0, 0, 0];
  ratios.forEach((ratio, index) => {
    outside += isOutside(ratio, epsilon);
    silent += !stillPushes(ratio, advantages[index], epsilon);
    sum += clipObjective(ratio, advantages[index], epsilon);
  });
  const total = ratios.length;
  return {
    total, outside, silent, pushing: total - silent, fractionOutside: outside / total,
    fractionZeroGradient: silent / total, meanObjective: sum / total,
  };
}

export function compute({ ratios, advantages, clip_epsilon }) {
  const sums = summarize(ratios, advantages, clip_epsilon);
  return { fraction_outside: sums.fractionOutside, mean_objective: sums.meanObjective,
    fraction_zero_gradient: sums.fractionZeroGradient, still_push: sums.pushing };
}

// --- the picture

const LARGEST = 2.2;
const TICKS = [0, 0.5, 1, 1.5, 2];
const VIEWS = ["samples", "one_step", "momentum", "unsampled"];

// Odd multiples of 0.005: ε is a multiple of 0.01, so that no sample lies on an edge.
export function snap(ratio) {
  const near = Math.round((ratio - 0.005) * 100) / 100 + 0.005;
  return Number(clamp(near, 0.005, LARGEST - 0.005).toFixed(3));
}

function samplePanel(shell, svg, sign) {
  const { store, words } = shell;
  const large = store.get("large");
  svg.setAttribute("class", sign > 0 ? "ppo-better" : "ppo-worse");
  const plot = axes(svg, {
    x: [0, LARGEST], y: sign > 0 ? [0, LARGEST] : [-LARGEST, 0], xTicks: TICKS,
    yTicks: TICKS.map((tick) => sign * tick), xLabel: words.ratio, yLabel: words.objective,
    title: sign > 0 ? words.better : words.worse, large,
    tick: (value) => String(value).replace("-", "−"),
  });
  const { X, Y, box, size } = plot;
  const back = plot.layer();
  const height = box.bottom - box.top;
  const band = draw("rect", { class: "ppo-band", y: box.top, height });
  const bandName = label({ "text-anchor": "middle", y: box.bottom - size * 0.5 }, words.band);
  const curve = draw("path", { class: "ppo-curve" });
  const flat = label({ class: "ppo-halo ppo-curve-name" }, words.flat);
  back.append(
    band,
    draw("path", { class: "ppo-unclipped", d: line([[X(0), Y(0)],
      [X(LARGEST), Y(sign * LARGEST)]]) }),
    curve, bandName, flat,
    label(sign > 0 ? { class: "ppo-halo", x: X(1.8), y: Y(1.86), "text-anchor": "end" }
      : { class: "ppo-halo", x: X(0.42), y: Y(-0.34) }, words.dashed),
  );
  const samples = [];
  store.get("advantages").forEach((advantage, index) => {
    if (Math.sign(advantage) === sign) samples.push(makeSample(shell, plot, index));
  });
  handleGroup(shell, svg, plot, { items: samples,
    name: sign > 0 ? words.group_better : words.group_worse });

  return (epsilon, ratios, revealed) => {
    const [low, high] = [1 - epsilon, 1 + epsilon];
    put(band, { x: X(low), width: X(high) - X(low) });
    put(bandName, { x: X(1) });
    put(flat, { visibility: revealed ? "visible" : "hidden" }); // it would tell the answer
    const corners = sign > 0 ? [[0, 0], [high, high], [LARGEST, high]]
      : [[0, -low], [low, -low], [LARGEST, -LARGEST]];
    put(curve, { d: line(corners.map(([x, y]) => [X(x), Y(y)])) });
    put(flat, sign > 0 ? { x: box.right, y: Y(high) + size * 1.3, "text-anchor": "end" }
      : { x: box.left + size * 0.4, y: Math.max(Y(-low) + size * 1.3, Y(-0.86) + size),
        "text-anchor": "start" }); // left of 0.8 and below, the panel is empty for every ε
    for (const sample of samples) sample.update(ratios[sample.index], sign, epsilon, revealed);
  };
}

function makeSample(shell, plot, index) {
  const { store, words } = shell;
  const scale = plot.size / 15; // marks grow with the letters
  const { node, mark, set } = pointHandle({ min: 0, max: LARGEST });
  return {
    index, node, nudge: 0.01,
    move(ratio) {
      const ratios = [...store.get("ratios")];
      ratios[index] = snap(ratio);
      store.set({ ratios });
    },
    get: () => store.get("ratios")[index],
    update(ratio, sign, epsilon, revealed) {
      const pushing = stillPushes(ratio, sign, epsilon);
      const kind = !revealed ? "hidden" : !pushing ? "silent"
        : isOutside(ratio, epsilon) ? "back" : "push";
      set({
        x: plot.X(ratio), y: plot.Y(clipObjective(ratio, sign, epsilon)), value: ratio,
        name: say(words, "sample", { number: index + 1,
          advantage: written(store.get("advantages")[index], 1).replace(".0", "") }),
        text: say(words, { hidden: "sample_hidden", push: "sample_pushes",
          back: "sample_back", silent: "sample_silent" }[kind], { ratio: fixed(ratio, 3) }),
      });
      put(mark, { d: MARKS[kind], "data-kind": kind,
        transform: `scale(${kind === "back" ? sign * scale : scale},${scale})` });
    },
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status, button } = shell;
  const choices = VIEWS.map((view) => button(`view_${view}`, () => {
    // With the counter in sight, the view goes where the counter says.
    if (shell.stepping()) {
      return shell.steps.open(STATES.find((state) => state.patch.view === view).name);
    }
    if (view === "samples") return store.set({ view });
    store.set({ view, step: 0 });
    player.play();
  }, { "aria-pressed": "false" }));
  const panels = [draw("svg"), draw("svg")];
  const sums = () => summarize(store.get("ratios"), store.get("advantages"),
    store.get("clip_epsilon"));

  const epsilonRow = sliderRow(shell, { key: "clip_epsilon", min: 0.05, max: 0.5, step: 0.01,
    text: words.epsilon });
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { total: sums().total }),
    range: () => ({ low: 0, high: sums().total, whole: true }),
    answer: (said) => (said === null ? say(words, "guessed_nothing", sums())
      : say(words, "guessed", { ...sums(), guess: said })),
  });
  const player = playRow(shell, { last: () => lastStep(), ms: () => (lastStep() === 1 ? 700 : 120),
    after: [make("span", { class: "ppo-soft" }, words.fixed_epsilon)] });
  const keys = markKey([["push", words.legend_pushes], ["back", words.legend_back],
    ["silent", words.legend_silent], ["hidden", words.legend_hidden]]);
  const numbers = numberList(shell, ["outside", "zero_gradient", "mean_objective"]);
  const intro = make("p");
  const help = make("p", { class: "ppo-soft ppo-aside" }, words.help);
  const formula = make("p", { class: "ppo-soft ppo-aside" }, words.formula);
  body.append(
    make("div", { class: "ppo-row", role: "group", "aria-label": words.views }, ...choices),
    ...guess.nodes, intro, make("div", { class: "ppo-panels" }, ...panels),
    row(epsilonRow, keys), player.node, numbers.node, status, formula, help,
  );

  const way = () => store.get("ways")[store.get("view")];
  const lastStep = () => (way() ? way().ratios.length - 1 : 0);

  let updates = [];
  function rebuild() {
    const view = store.get("view");
    player.halt();
    const seen = view === "samples";
    choices.forEach((choice, index) => put(choice, { "aria-pressed": VIEWS[index] === view }));
    for (const node of [epsilonRow, numbers.node, keys, help, formula]) node.hidden = !seen;
    player.node.hidden = seen;
    intro.hidden = seen;
    if (seen) updates = panels.map((svg, index) => samplePanel(shell, svg, index ? -1 : 1));
    else if (view === "unsampled") updates = [unsampledPanels(shell, panels)];
    else updates = [pathPanels(shell, panels, view)];
    if (!seen) write(intro, words[`${view}_intro`]);
    update();
  }

  function update() {
    const view = store.get("view");
    guess.update(view === "samples");
    if (view === "samples") return updateSamples();
    const step = player.at();
    for (const change of updates) change(step);
    player.update();
    write(status, view === "unsampled" ? unsampledSentence(step) : pathSentence(step));
  }

  function updateSamples() {
    const [e, revealed] = [store.get("clip_epsilon"), store.get("revealed")];
    const { total, outside, silent, fractionOutside, fractionZeroGradient, meanObjective } = sums();
    for (const change of updates) change(e, store.get("ratios"), revealed);
    const share = (count, fraction) => (revealed
      ? say(words, "count", { count, total, fraction: fixed(fraction, 3) }) : null);
    numbers.update([share(outside, fractionOutside), share(silent, fractionZeroGradient),
      written(meanObjective, 4)]);
    const values = { ...sums(), epsilon: fixed(e, 2), low: fixed(1 - e, 2), high: fixed(1 + e, 2),
      back: outside - silent, objective: written(meanObjective, 4) };
    write(status, say(words, revealed ? "sentence" : "sentence_hidden", values));
  }

  function pathSentence(step) {
    const { ratios, probabilities, gradients, pushes } = way();
    const gradient = pushes[step]
      ? say(words, "gradient_on", { gradient: fixed(gradients[step], 3) }) : words.gradient_off;
    return say(words, "path_sentence", { step, gradient, ratio: fixed(ratios[step], 3),
      probability: fixed(probabilities[step], 3) });
  }

  function unsampledSentence(step) {
    const { rare, ratios, outside: shares, kl, miss } = way();
    return say(words, "unsampled_sentence", { probability: fixed(rare[step], 2),
      ratio: fixed(ratios[step][0], 3), outside: fixed(shares[step], 0), kl: fixed(kl[step], 3),
      miss: fixed(miss, 2) });
  }

  store.on(["view", "large", "advantages"], rebuild);
  store.on(["ratios", "clip_epsilon", "guess", "revealed", "step"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
