// --- numbers: held to Python's in random states

// In the size of the critic's error each curve is a quadratic: no point is interpolated.
export function curvesOf({ grid, gamma, error_shape, error_size: size }) {
  const here = grid[GAMMAS.indexOf(gamma)];
  return here.exact.map((none, kind) => {
    const [linear, square] = here[error_shape][kind];
    return none.map((value, at) => Math.max(value + size * (linear[at] + size * square[at]), 0));
  });
}

export function errorsOf([bias, variance], number) {
  return bias.map((value, at) => value + variance[at] / number);
}

export function compute(state, curves = curvesOf(state)) {
  const errors = errorsOf(curves, state.num_episodes);
  const at = nearest(state.gae_lambda);
  const weight = at / POINTS;
  const least = Math.min(...errors);
  const steps = Array.from({ length: WEIGHTS }, (_, k) => k);
  return {
    bias_squared: curves[0][at],
    variance: curves[1][at],
    squared_error: errors[at],
    best_lambda: errors.indexOf(least) / POINTS,
    best_error: least,
    gradient_bias: Math.sqrt(curves[0][at]),
    advantage_bias: Math.sqrt(curves[2][at]),
    return_weights: steps.map((k) => (1 - weight) * weight ** k),
    later_weight: weight ** WEIGHTS,
    trace_weights: steps.map((k) => (state.gamma * weight) ** k),
  };
}

// --- what stands where

const GAMMAS = [1, 0.95];
const BATCH_SIZES = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000];
const SHAPES = ["share", "constant", "turns"];
const LARGEST_ERROR = 0.6;
const POINTS = 100;
const WEIGHTS = 12;
const nearest = (weight) => Math.floor(weight * POINTS + 0.5);

// --- the whole

function criticWords(words, { error_shape, error_size: size }) {
  if (size === 0) return words.says_exact;
  return error_shape === "share"
    ? say(words, "says_share", { percent: written(100 * (1 - size), 0) })
    : say(words, `says_${error_shape}`, { number: written(LARGEST_ERROR * size, 2) });
}

// The size is a number without a meaning of its own: the row says what the critic says.
function sizeRow({ store, words, listen, watch }) {
  const input = make("input", { type: "range", min: 0, max: 1, step: 0.05,
    style: "width: 150px; flex-basis: 150px" });
  const shown = make("span", { class: "ppo-value", "aria-hidden": "true" });
  listen(input, "input", () => store.set({ error_size: Number(input.value) }));
  watch(["error_size", "error_shape"], () => {
    const text = criticWords(words, store.pick("error_shape", "error_size"));
    input.value = String(store.get("error_size"));
    put(input, { "aria-valuetext": text });
    write(shown, text);
  });
  return make("label", {}, words.error_size, input, shown);
}

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("grid", "gamma", "error_shape", "error_size", "num_episodes",
    "gae_lambda", "guess", "revealed");
  const episodes = ({ num_episodes: number }) =>
    (number === 1 ? words.episode : say(words, "episodes", { number }));
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { critic: criticWords(words, state()),
      episodes: episodes(state()) }),
    range: () => ({ low: 0, high: 1, whole: false }),
    answer: (said) => {
      const found = compute(state());
      const best = { best: written(found.best_lambda, 2), least: written(found.best_error, 4) };
      if (said === null) return say(words, "guessed_nothing", best);
      const error = written(compute({ ...state(), gae_lambda: said }).squared_error, 4);
      return say(words, "guessed", { ...best, guess: String(said), error });
    },
  });
  const choose = (key, options) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options }));
  const more = row(sizeRow(shell), choose("gamma", GAMMAS.map((gamma) => [gamma, String(gamma)])));
  const panels = [draw("svg"), draw("svg"), draw("svg")];
  body.append(
    ...guess.nodes, make("div", { class: "ppo-panels",
      style: "grid-template-columns: repeat(auto-fit, minmax(min(280px, 100%), 1fr))" }, ...panels),
    lineKey([["ppo-bar-new", words.legend_return], ["ppo-ink", words.legend_trace],
      ["ppo-unclipped", words.legend_bias], ["ppo-mark-line", words.legend_variance],
      ["ppo-new", words.legend_error], ["ppo-curve", words.legend_advantage]]),
    row(sliderRow(shell, { key: "gae_lambda", min: 0, max: 1, step: 0.01 }),
      gridSlider(shell, { key: "num_episodes", values: BATCH_SIZES, text: words.num_episodes,
        width: 180 })),
    row(choose("error_shape", SHAPES.map((shape) => [shape, words[`shape_${shape}`]])), more),
    status, make("p", { class: "ppo-soft ppo-aside" }, words.help),
  );
  body.querySelector(".ppo-key .ppo-curve").parentNode.classList.add("ppo-worse");

  let weights, errors, biases, curves;

  function rebuild() {
    [weights, errors, biases] = [weightPanel, errorPanel, biasPanel].map((panel, index) =>
      panel(shell, panels[index]));
    redraw();
  }

  function redraw() { // all but λ: the curves themselves
    const now = state();
    curves = curvesOf(now);
    const found = compute(now, curves);
    errors.redraw(now, curves, found);
    biases.redraw(now, curves);
    more.hidden = !now.revealed;
    update();
  }

  function update() {
    const now = state();
    const found = compute(now, curves);
    const weight = nearest(now.gae_lambda) / POINTS;
    weights(found);
    errors.update(weight, found);
    biases.update(weight, found);
    guess.update();
    write(status, now.revealed ? say(words, "sentence", {
      critic: criticWords(words, now), gamma: String(now.gamma), episodes: episodes(now),
      weight: written(weight, 2), bias: written(found.bias_squared, 4),
      variance: written(found.variance / now.num_episodes, 4),
      error: written(found.squared_error, 4), best: written(found.best_lambda, 2),
      least: written(found.best_error, 4), gradient: written(found.gradient_bias, 3),
      advantage: written(found.advantage_bias, 3),
    }) : say(words, "sentence_hidden", { weight: written(weight, 2),
      first: written(found.return_weights[0], 2), tenth: written(found.trace_weights[10], 2) }));
  }

  store.on(["large"], rebuild);
  store.on(["gamma", "error_shape", "error_size", "num_episodes", "guess", "revealed"], redraw);
  store.on(["gae_lambda"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
