// --- numbers: held to Python's by tests/test_widgets_browser.py

const ADDED = 1e-4; // to the spread
const NOTHING = 1e-9; // a push below this one is none
const [SHORT, LONG] = [2, 3]; // the answers that are compared

export function compute({ study, scores, baseline, spread, mode }) {
  const { lengths, longest, methods } = study;
  const count = scores.length;
  const mean = scores.reduce((sum, score) => sum + score, 0) / count;
  const from = {
    none: (score) => score,
    mean: (score) => score - mean,
    others: (score) => ((score - mean) * count) / (count - 1),
  }[baseline];
  const squares = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  const by = spread === "divided" ? Math.sqrt(squares / (count - 1)) + ADDED : 1;
  const advantages = scores.map((score) => from(score) / by);
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const weigh = {
    token_mean: () => 1 / tokens,
    sequence_mean: (length) => 1 / length / count,
    sequence_sum: () => 1 / count,
    constant: () => 1 / (count * longest),
  }[mode];
  const weights = lengths.map(weigh);
  const pushes = advantages.map((advantage, at) => weights[at] * advantage);
  return {
    advantages, weights, pushes,
    factor: Math.min(Math.abs(pushes[SHORT]), Math.abs(pushes[LONG])) > NOTHING
      ? pushes[SHORT] / pushes[LONG] : null,
    method: methods[`${baseline}/${spread}/${mode}`] ?? "",
  };
}

// --- the picture

const PLACES = [0, 1, 2, 3];
const ACROSS = [-0.6, 3.6];
const snap = (score) => Number(clamp(Math.round(score * 10) / 10, 0, 1).toFixed(1));
const tick = (value) => String(value).replace("-", "−");

// The scores, which a hand drags, and the advantages that come of them.
function scorePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: ACROSS, y: [-2, 2], xTicks: PLACES, yTicks: [-2, -1, 0, 1, 2],
    xTick: (at) => words[`answer_${at}`], yTick: tick, xLabel: words.answers_axis, yLabel: words.scores_axis,
    title: words.scores_title, large: store.get("large"), xGrid: false });
  const { X, Y, box, size } = plot;
  const columns = PLACES.map(() => [draw("rect", { class: "ppo-bar-old" }),
    draw("rect", { class: "ppo-bar-new" })]);
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    ...columns.flat());
  const values = PLACES.map((at) => label({ class: "ppo-halo", "text-anchor": "middle",
    x: fixed(X(at), 2), y: fixed(box.bottom - size * 0.4, 2) }));
  plot.layer().append(...values); // the number stands even where a bar leaves the panel
  const items = PLACES.map((at) => {
    const { node, set } = barHandle(plot, { min: 0, max: 1, at, width: 0.8 });
    return {
      node, nudge: 0.1, at: () => at, get: () => store.get("scores")[at],
      move(score) {
        const scores = [...store.get("scores")];
        scores[at] = snap(score);
        store.set({ scores });
      },
      update: (score) => set({ value: score, name: say(words, "score", { number: at + 1 }),
        text: say(words, "score_value", { score: written(score, 1) }) }),
    };
  });
  handleGroup(shell, svg, plot, { name: words.group, items, along: "y" });
  return ({ scores, revealed }, { advantages }) => PLACES.forEach((at) => {
    const [score, advantage] = columns[at];
    setBar(plot, score, { at, width: 0.8, to: scores[at] });
    setBar(plot, advantage, { at, width: 0.5, to: revealed ? clamp(advantages[at], -2, 2) : 0 });
    write(values[at], revealed ? written(advantages[at], 2) : "?");
    items[at].update(scores[at]);
  });
}

// What one token of each answer is pushed, the largest as 1.
function pushPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: ACROSS, y: [-1.1, 1.1], xTicks: PLACES, yTicks: [-1, 0, 1],
    xTick: (at) => words[`answer_${at}`], yTick: tick, xLabel: words.answers_axis, yLabel: words.pushes_axis,
    title: words.pushes_title, large: store.get("large"), xGrid: false });
  const { X, Y, box, size } = plot;
  const bars = PLACES.map(() => draw("rect", { class: "ppo-bar-new" }));
  const values = PLACES.map((at) => label({ class: "ppo-halo", "text-anchor": "middle",
    x: fixed(X(at), 2) }));
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    ...bars, ...values);
  return ({ revealed }, { pushes }) => {
    const largest = Math.max(...pushes.map(Math.abs)) || 1;
    PLACES.forEach((at) => {
      setBar(plot, bars[at], { at, width: 0.5, to: revealed ? pushes[at] / largest : 0 });
      const y = !revealed || pushes[at] < 0 ? Y(0) - size * 0.4 : Y(0) + size * 1.1;
      put(values[at], { y: fixed(y, 2) });
      write(values[at], revealed ? written(pushes[at], 4) : "?");
    });
  };
}

// The loss, written out from the three choices.
function formulaOf(words, { baseline, spread, mode }) {
  const compared = words[`formula_${baseline}`];
  const inner = baseline === "none" ? compared : `(${compared})`;
  return say(words, "formula", { weight: words[`formula_${mode}`],
    advantage: spread === "divided" ? say(words, "formula_divided", { inner }) : compared });
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("study", "scores", "baseline", "spread", "mode", "revealed");
  const panels = [draw("svg"), draw("svg")];
  const formula = make("p", { class: "ppo-tabular ppo-aside" });
  const factorOf = () => {
    const { factor } = compute(state());
    return factor === null ? words.still : say(words, "times", { factor: written(factor, 2) });
  };
  const guess = guessRows(shell, {
    question: () => words.guess,
    range: () => ({ low: -1000, high: 1000, whole: false }),
    answer: (said) => (said === null ? say(words, "guessed_nothing", { factor: factorOf() })
      : say(words, "guessed", { factor: factorOf(), guess: String(said).replace("-", "−") })),
  });
  const choose = (key, options) => [make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options })];
  const named = (values, word) => values.map((each) => [each, word(each)]);
  const baselines = named(["none", "mean", "others"], (each) => words[`baseline_${each}`]);
  const spreads = named(["kept", "divided"], (each) => words[`spread_${each}`]);
  const modes = named(["token_mean", "sequence_mean", "sequence_sum", "constant"],
    (each) => words[`mode_${each}`]);
  body.append(row(...choose("baseline", baselines), ...choose("spread", spreads)),
    row(...choose("mode", modes)),
    ...guess.nodes, make("div", { class: "ppo-panels" }, ...panels),
    lineKey([["ppo-bar-old", words.legend_score], ["ppo-bar-new", words.legend_advantage]]),
    status, formula, make("p", { class: "ppo-soft ppo-aside" }, words.formula_note),
    make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let updates = [];
  function rebuild() {
    updates = [scorePanel(shell, panels[0]), pushPanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const numbers = compute(now);
    for (const change of updates) change(now, numbers);
    guess.update();
    write(formula, formulaOf(words, now));
    const whose = numbers.method ? say(words, "whose", { method: numbers.method }) : words.nobody;
    const told = !now.revealed ? "sentence_hidden"
      : numbers.factor === null ? "sentence_still" : "sentence";
    write(status, say(words, told, { whose, factor: written(numbers.factor ?? 0, 2),
      short: written(numbers.pushes[SHORT], 4), long: written(numbers.pushes[LONG], 4) }));
  }

  store.on(["large"], rebuild);
  store.on(["scores", "baseline", "spread", "mode", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
