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
  const group = plot.layer({ role: "group",
    "aria-label": sign > 0 ? words.group_better : words.group_worse });
  const samples = [];
  store.get("advantages").forEach((advantage, index) => {
    if (Math.sign(advantage) === sign) samples.push(makeSample(shell, plot, index));
  });
  group.append(...samples.map((sample) => sample.node));
  roving(samples);
  dragging(plot, svg, group, samples);

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
  const mark = draw("path", { class: "ppo-mark" });
  const scale = plot.size / 15; // marks grow with the letters
  const node = draw("g", { class: "ppo-sample", role: "slider", tabindex: -1,
    "aria-orientation": "horizontal", "aria-valuemin": 0, "aria-valuemax": LARGEST },
  draw("circle", { class: "ppo-hit", r: 13 }), draw("circle", { class: "ppo-ring", r: 11 }), mark);
  const move = (ratio) => {
    const ratios = [...store.get("ratios")];
    ratios[index] = snap(ratio);
    store.set({ ratios });
  };
  node.addEventListener("keydown", (event) => { // the listener goes with the node
    const sign = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!sign || event.ctrlKey || event.metaKey || event.altKey) return;
    move(store.get("ratios")[index] + sign * (event.shiftKey ? 0.1 : 0.01));
    event.preventDefault();
  });
  return {
    index, node, move,
    ratio: () => store.get("ratios")[index],
    update(ratio, sign, epsilon, revealed) {
      const pushing = stillPushes(ratio, sign, epsilon);
      const kind = !revealed ? "hidden" : !pushing ? "silent"
        : isOutside(ratio, epsilon) ? "back" : "push";
      const [x, y] = [plot.X(ratio), plot.Y(clipObjective(ratio, sign, epsilon))];
      put(node, {
        transform: `translate(${fixed(x, 2)},${fixed(y, 2)})`,
        "aria-label": say(words, "sample", { number: index + 1,
          advantage: written(store.get("advantages")[index], 1).replace(".0", "") }),
        "aria-valuenow": ratio,
        "aria-valuetext": say(words, { hidden: "sample_hidden", push: "sample_pushes",
          back: "sample_back", silent: "sample_silent" }[kind], { ratio: fixed(ratio, 3) }),
      });
      put(mark, { d: MARKS[kind], "data-kind": kind,
        transform: `scale(${kind === "back" ? sign * scale : scale},${scale})` });
    },
  };
}

// The sample nearest to the pointer follows it, also where several overlap.
function dragging(plot, svg, group, samples) {
  let held = null;
  let frame = null; // from the screen into the panel as it lay when the drag began
  const ratioAt = (event) =>
    plot.atX(new DOMPoint(event.clientX, event.clientY).matrixTransform(frame).x);
  group.addEventListener("pointerdown", (event) => {
    frame = svg.getScreenCTM().inverse();
    const distance = (sample) => Math.abs(sample.ratio() - ratioAt(event));
    held = samples.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    group.setPointerCapture(event.pointerId);
    held.node.focus({ preventScroll: true });
    event.preventDefault();
  });
  group.addEventListener("pointermove", (event) => held?.move(ratioAt(event)));
  for (const type of ["pointerup", "pointercancel"]) {
    group.addEventListener(type, () => (held = null));
  }
}

// One tab stop for a group: up and down walk through it in the order of the ratios.
function roving(samples) {
  const choose = (chosen) => samples.forEach((sample) =>
    put(sample.node, { tabindex: sample === chosen ? 0 : -1 }));
  for (const sample of samples) {
    sample.node.addEventListener("focus", () => choose(sample));
    sample.node.addEventListener("keydown", (event) => {
      const change = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!change || event.ctrlKey || event.metaKey || event.altKey) return;
      const order = [...samples].sort((a, b) => a.ratio() - b.ratio() || a.index - b.index);
      order[clamp(order.indexOf(sample) + change, 0, order.length - 1)].node.focus();
      event.preventDefault();
    });
  }
  if (samples.length) choose(samples[0]);
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status, button, listen } = shell;
  const choices = VIEWS.map((view) => button(`view_${view}`, () => {
    // With the counter in sight, the view goes where the counter says.
    if (shell.stepping()) {
      return shell.steps.open(STATES.find((state) => state.patch.view === view).name);
    }
    if (view === "samples") return store.set({ view });
    store.set({ view, step: 0 });
    play();
  }, { "aria-pressed": "false" }));
  const panels = [draw("svg"), draw("svg")];

  const epsilon = make("input", { type: "range", min: 0.05, max: 0.5, step: 0.01 });
  const epsilonText = make("span", { class: "ppo-value", "aria-hidden": "true" });
  listen(epsilon, "input", () => store.set({ clip_epsilon: Number(epsilon.value) }));
  const epsilonRow = make("label", {}, words.epsilon, epsilon, epsilonText);

  const guess = make("input", { type: "number", min: 0, step: 1, inputmode: "numeric" });
  const guessText = make("span");
  const guessRow = make("div", { class: "ppo-row" }, make("label", {}, guessText, guess),
    button("reveal", () => {
      if (said() === undefined) {
        return write(status, say(words, "guess_range", { total: store.get("ratios").length }));
      }
      store.set({ guess: said(), revealed: true });
    }, { class: "ppo-main" }));
  // null while the box is empty, undefined if no such number of samples can push
  const said = () => {
    if (guess.value === "") return guess.validity.badInput ? undefined : null;
    const number = Number(guess.value);
    const known = Number.isInteger(number) && number >= 0 && number <= store.get("ratios").length;
    return known ? number : undefined;
  };
  listen(shell.root, "ppo-leave", () => {
    if (!guessRow.hidden && typeof said() === "number") store.set({ guess: said() });
  });
  listen(guess, "keydown", (event) => {
    if (event.key === "Enter") guessRow.querySelector("button").click();
  });
  const guessed = make("span");
  const again = button("guess_again", () => {
    guess.value = "";
    store.set({ guess: null, revealed: false });
  });
  const guessedRow = make("div", { class: "ppo-row" }, guessed, again);

  const stepInput = make("input", { type: "range", min: 0, step: 1 });
  const stepText = make("span", { class: "ppo-value", "aria-hidden": "true" });
  listen(stepInput, "input", () => {
    halt();
    store.set({ step: Number(stepInput.value) });
  });
  const playButton = button("play", () => (timer ? halt() : play()));
  const stepRow = make("div", { class: "ppo-row" }, make("label", {}, words.step, stepInput,
    stepText), playButton, make("span", { class: "ppo-soft" }, words.fixed_epsilon));

  const keys = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  for (const [kind, name] of [["push", "legend_pushes"], ["back", "legend_back"],
    ["silent", "legend_silent"], ["hidden", "legend_hidden"]]) {
    keys.append(make("span", { class: "ppo-key" }, draw("svg", { viewBox: "-9 -9 18 18" },
      draw("path", { class: "ppo-mark", d: MARKS[kind], "data-kind": kind })), words[name]));
  }
  const numbers = make("dl", { class: "ppo-numbers" });
  const [outside, silent, objective] = ["outside", "zero_gradient", "mean_objective"].map((key) => {
    const value = make("dd");
    numbers.append(make("div", {}, make("dt", {}, words[key]), value));
    return value;
  });
  const intro = make("p");
  const help = make("p", { class: "ppo-soft ppo-aside" }, words.help);
  const formula = make("p", { class: "ppo-soft ppo-aside" }, words.formula);
  body.append(
    make("div", { class: "ppo-row", role: "group", "aria-label": words.views }, ...choices),
    guessRow, guessedRow, intro, make("div", { class: "ppo-panels" }, ...panels),
    make("div", { class: "ppo-row" }, epsilonRow, keys), stepRow, numbers, status, formula, help,
  );

  let timer = null;
  function halt() {
    clearInterval(timer);
    timer = null;
    write(playButton, words.play);
  }
  function play() {
    halt();
    const last = lastStep();
    if (calm()) return store.set({ step: last });
    if (store.get("step") >= last) store.set({ step: 0 });
    write(playButton, words.stop);
    timer = setInterval(() => {
      store.set({ step: Math.min(store.get("step") + 1, last) });
      if (store.get("step") >= last) halt();
    }, last === 1 ? 700 : 120);
  }
  shell.endings.push(halt);

  const way = () => store.get("ways")[store.get("view")];
  const lastStep = () => (way() ? way().ratios.length - 1 : 0);

  let updates = [];
  function rebuild() {
    const view = store.get("view");
    halt();
    const seen = view === "samples";
    choices.forEach((choice, index) => put(choice, { "aria-pressed": VIEWS[index] === view }));
    for (const node of [epsilonRow, numbers, keys, help, formula]) node.hidden = !seen;
    stepRow.hidden = seen;
    intro.hidden = seen;
    if (seen) updates = panels.map((svg, index) => samplePanel(shell, svg, index ? -1 : 1));
    else if (view === "unsampled") updates = [unsampledPanels(shell, panels)];
    else updates = [pathPanels(shell, panels, view)];
    if (!seen) {
      write(intro, words[`${view}_intro`]);
      put(stepInput, { max: lastStep() });
    }
    update();
  }

  function update() {
    const view = store.get("view");
    if (view === "samples") return updateSamples();
    guessRow.hidden = guessedRow.hidden = true;
    const step = clamp(store.get("step"), 0, lastStep());
    for (const change of updates) change(step);
    stepInput.value = String(step);
    write(stepText, String(step));
    write(status, view === "unsampled" ? unsampledSentence(step) : pathSentence(step));
  }

  function updateSamples() {
    const [ratios, advantages] = [store.get("ratios"), store.get("advantages")];
    const [e, revealed] = [store.get("clip_epsilon"), store.get("revealed")];
    const sums = summarize(ratios, advantages, e);
    const { total, pushing } = sums;
    for (const change of updates) change(e, ratios, revealed);
    epsilon.value = String(e);
    write(epsilonText, fixed(e, 2));
    put(guess, { max: total });
    write(guessText, say(words, "guess", { total }));
    guessRow.hidden = revealed;
    guessedRow.hidden = !revealed;
    write(guessed, store.get("guess") === null ? say(words, "guessed_nothing", { pushing, total })
      : say(words, "guessed", { guess: store.get("guess"), pushing, total }));
    const share = (count, fraction) =>
      say(words, "count", { count, total, fraction: fixed(fraction, 3) });
    write(outside, revealed ? share(sums.outside, sums.fractionOutside) : words.hidden);
    write(silent, revealed ? share(sums.silent, sums.fractionZeroGradient) : words.hidden);
    write(objective, written(sums.meanObjective, 4));
    const values = { ...sums, epsilon: fixed(e, 2), low: fixed(1 - e, 2), high: fixed(1 + e, 2),
      back: sums.outside - sums.silent, objective: written(sums.meanObjective, 4) };
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
