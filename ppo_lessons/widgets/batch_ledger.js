// --- numbers: held to Python's in random states

export function compute(state) {
  const { num_envs, num_steps, num_epochs, num_minibatches, step, recording } = state;
  const squeeze = recording.squeezes[[num_envs, num_steps, num_minibatches].join(",")];
  const samples = num_steps * num_envs;
  const updates = num_epochs * num_minibatches;
  const made = Math.min(step, updates);
  const places = (epoch) => Array.from(squeeze.dealt[epoch], Number);
  const epochs = Math.floor(made / num_minibatches);
  const begun = made % num_minibatches;
  const visits = begun === 0 ? Array(samples).fill(epochs)
    : places(epochs).map((place) => epochs + (place < begun ? 1 : 0));
  const latest = made === 0 ? Array(samples).fill(false)
    : places(Math.floor((made - 1) / num_minibatches)).map((place) =>
      place === (made - 1) % num_minibatches);
  return { samples, updates, minibatch_size: samples / num_minibatches, made, visits, latest,
    ratios: squeeze.ratios[made] };
}

// --- the picture

const RATIOS = [0.5, 1.5];
const upTo = (count) => Array.from({ length: count }, (_, index) => index);

// A cell for each sample: its shade and its digit say how often it was used, a frame who is new.
function ledgerPanel(shell, svg) {
  const { store, words } = shell;
  const { num_envs, num_steps, num_epochs } = store.pick("num_envs", "num_steps", "num_epochs");
  const plot = axes(svg, { x: [-0.6, num_steps - 0.4], y: [num_envs - 0.4, -0.6], xGrid: false,
    xTicks: upTo(num_steps).filter((t) => t % 2 === 0), yTicks: upTo(num_envs),
    xLabel: words.time_axis, yLabel: words.env_axis, title: words.ledger_title,
    large: store.get("large") });
  const { X, Y, size } = plot;
  const [width, height] = [X(0.92) - X(0), Y(0.92) - Y(0)];
  const layer = plot.layer();
  const cells = upTo(num_steps * num_envs).map((index) => {
    const [x, y] = [X(Math.floor(index / num_envs)), Y(index % num_envs)];
    const shade = draw("rect", { x: fixed(x - width / 2, 2), y: fixed(y - height / 2, 2),
      width: fixed(width, 2), height: fixed(height, 2), fill: "var(--ppo-new)" });
    const frame = draw("rect", { x: fixed(x - width / 2 + 1.5, 2), y: fixed(y - height / 2 + 1.5, 2),
      width: fixed(width - 3, 2), height: fixed(height - 3, 2), fill: "none", "stroke-width": 2.5,
      stroke: "var(--ppo-ink)" });
    const digit = label({ x: fixed(x, 2), y: fixed(y + size * 0.36, 2), "text-anchor": "middle" }, "");
    layer.append(shade, frame, digit);
    return { shade, frame, digit };
  });
  return ({ revealed }, { visits, latest }) => cells.forEach(({ shade, frame, digit }, index) => {
    put(shade, { "fill-opacity": fixed(revealed ? 0.06 + 0.44 * (visits[index] / num_epochs) : 0.06, 3) });
    put(frame, { visibility: revealed && latest[index] ? "visible" : "hidden" });
    write(digit, revealed ? String(visits[index]) : "");
  });
}

function ratioPanel(shell, svg) {
  const { store, words } = shell;
  const { num_epochs, num_minibatches, recording } = store.pick("num_epochs", "num_minibatches",
    "recording");
  const updates = num_epochs * num_minibatches;
  const plot = axes(svg, { x: [0, updates], y: RATIOS, xTick: String,
    xTicks: upTo(num_epochs + 1).map((epoch) => epoch * num_minibatches),
    yTicks: [0.6, 0.8, 1, 1.2, 1.4], xLabel: words.step_axis, yLabel: words.ratio_axis,
    title: words.ratio_title, large: store.get("large") });
  const { X, Y, box, size } = plot;
  const key = Object.values(store.pick("num_envs", "num_steps", "num_minibatches")).join(",");
  const ratios = recording.squeezes[key].ratios.slice(0, updates + 1);
  const curve = (which) => ratios.map((each, step) => [X(step), Y(each[which])]);
  const [lowest, low, high, highest] = upTo(4).map(curve);
  const band = draw("path", { class: "ppo-band" });
  const dots = upTo(4).map((which) => draw("circle", { r: size / 4,
    class: which === 0 || which === 3 ? "ppo-ink-dot" : "ppo-dot" }));
  const here = draw("path", { class: "ppo-mark-line" });
  const edges = [1 - recording.clip_epsilon, 1 + recording.clip_epsilon].map((edge) =>
    draw("path", { class: "ppo-ink", d: `M${box.left},${Y(edge)}H${box.right}` }));
  const lines = draw("g", {}, band, ...edges,
    ...[lowest, highest].map((points) => draw("path", { class: "ppo-unclipped", d: line(points) })),
    ...[low, high].map((points) => draw("path", { class: "ppo-new", d: line(points) })), here, ...dots);
  plot.layer().append(lines);
  return ({ revealed }, { made }) => {
    put(lines, { visibility: revealed ? "visible" : "hidden" });
    put(band, { d: `${line([...highest.slice(0, made + 1), ...lowest.slice(0, made + 1).reverse()])}Z` });
    put(here, { d: `M${fixed(X(made), 2)},${box.top}V${box.bottom}` });
    [lowest, low, high, highest].forEach((points, which) =>
      put(dots[which], { cx: fixed(points[made][0], 2), cy: fixed(points[made][1], 2) }));
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const sizes = ["num_envs", "num_steps", "num_epochs", "num_minibatches"];
  const state = () => store.pick(...sizes, "step", "recording", "revealed");
  const panels = [draw("svg"), draw("svg")];
  const times = (number) => (number === 1 ? words.once : say(words, "often", { number }));
  const guess = guessRows(shell, {
    question: () => say(words, "guess", store.pick(...sizes)),
    range: () => ({ low: 1, high: 10000, whole: true }),
    answer: (said) => {
      const { updates, num_epochs } = { ...compute(state()), ...store.pick("num_epochs") };
      const told = { updates, times: times(num_epochs), guess: said };
      return say(words, said === null ? "guessed_nothing" : "guessed", told);
    },
  });
  const choose = (key, values) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options: values.map((n) => [n, String(n)]) }));
  const scrub = playRow(shell, { last: () => compute(state()).updates, ms: () => 500,
    after: [choose("num_envs", [4, 8]), choose("num_steps", [8, 16])] });
  const list = numberList(shell, ["samples", "minibatch_size", "updates", "uses"]);
  list.node.classList.add("ppo-aside");
  body.append(...guess.nodes,
    row(sliderRow(shell, { key: "num_epochs", min: 1, max: 8, step: 1, digits: 0 }),
      gridSlider(shell, { key: "num_minibatches", values: [1, 2, 4, 8], text: words.num_minibatches,
        width: 120 })),
    make("div", { class: "ppo-panels" }, ...panels), scrub.node,
    lineKey([["ppo-bar-framed", words.legend_latest], ["ppo-unclipped", words.legend_all],
      ["ppo-new", words.legend_most], ["ppo-ink", words.legend_edge],
      ["ppo-mark-line", words.legend_here]]),
    list.node, status, make("p", { class: "ppo-soft ppo-aside" }, words.about));
  body.querySelector(".ppo-bar-framed").setAttribute("style",
    "fill: none; stroke: var(--ppo-ink); stroke-width: 2.5");

  let updates = [];
  function rebuild() {
    updates = [ledgerPanel(shell, panels[0]), ratioPanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    for (const change of updates) change(now, found);
    guess.update();
    scrub.update();
    scrub.node.hidden = !now.revealed;
    list.update([String(found.samples), String(found.minibatch_size),
      now.revealed ? String(found.updates) : null, now.revealed ? times(now.num_epochs) : null]);
    const most = Math.max(...found.visits);
    const ahead = found.visits.filter((each) => each === most).length;
    const others = found.samples - ahead;
    const used = others === 0 ? say(words, "used_all", { times: most })
      : say(words, "used_some", { ahead, times: most, others, less: most - 1 });
    write(status, say(words, now.revealed ? "sentence" : "sentence_hidden", { ...now, ...found, used,
      low: written(found.ratios[0], 2), high: written(found.ratios[3], 2) }));
  }

  store.on(["large", ...sizes], rebuild);
  store.on(["step", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
