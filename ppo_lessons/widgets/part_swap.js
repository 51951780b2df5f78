// --- numbers: held to Python's by tests/test_widgets_browser.py

const ADDED = 1e-4; // to the spread
const NOTHING = 1e-9; // a push below this one is none
const [SHORT, LONG] = [2, 3]; // the answers that are compared
const PLACES_TO_FILL = ["baseline", "spread", "mode", "kl", "clip"];
const RATIOS = Array.from({ length: 16 }, (_, at) => (at + 5) / 10);

export function compute({ study, scores, baseline, spread, mode, kl, clip, ratio }) {
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
  const edge = clip === "wide" ? 1 + 0.28 : 1 + 0.2;
  const slope = (advantage) => {
    if (clip === "none") return advantage;
    if (clip === "limited") return Math.min(ratio, edge) * advantage;
    const inside = advantage > 0 ? ratio <= edge : ratio >= 1 - 0.2;
    return inside ? ratio * advantage : 0;
  };
  const pushes = advantages.map((advantage, at) => weights[at] * slope(advantage));
  return {
    advantages, weights, pushes,
    factor: Math.min(Math.abs(pushes[SHORT]), Math.abs(pushes[LONG])) > NOTHING
      ? pushes[SHORT] / pushes[LONG] : null,
    method: methods[[baseline, spread, mode, kl, clip].join("/")] ?? "",
  };
}

// The loss, written out from the five choices.
function formulaOf(words, { baseline, spread, mode, kl, clip }) {
  const compared = words[`formula_${baseline}`];
  const inner = baseline === "none" ? compared : `(${compared})`;
  return say(words, "formula", { weight: words[`formula_${mode}`],
    term: words[`formula_clip_${clip}`], charge: kl === "loss" ? words.formula_kl_loss : "",
    paid: kl === "reward" ? words.formula_kl_reward : words.formula_paid,
    advantage: spread === "divided" ? say(words, "formula_divided", { inner }) : compared });
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("study", "scores", ...PLACES_TO_FILL, "ratio", "revealed");
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
  // a name and its buttons: they stay together where a line is too short for the next group
  const choose = (key, options) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options }));
  const named = (values, word) => values.map((each) => [each, word(each)]);
  const baselines = named(["none", "mean", "others"], (each) => words[`baseline_${each}`]);
  const spreads = named(["kept", "divided"], (each) => words[`spread_${each}`]);
  const modes = named(["token_mean", "sequence_mean", "sequence_sum", "constant"],
    (each) => words[`mode_${each}`]);
  const prices = named(["reward", "loss", "none"], (each) => words[`kl_${each}`]);
  const clips = named(["token", "wide", "answer", "limited", "none"],
    (each) => words[`clip_${each}`]);
  body.append(row(choose("baseline", baselines), choose("spread", spreads)),
    row(choose("mode", modes), choose("kl", prices)),
    row(choose("clip", clips), gridSlider(shell, { key: "ratio", values: RATIOS,
      text: words.ratio, width: 120, show: (ratio) => written(ratio, 1) })),
    ...guess.nodes, make("div", { class: "ppo-panels ppo-many" }, ...panels),
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
    write(status, say(words, told, { whose, ratio: written(now.ratio, 1), factor: written(numbers.factor ?? 0, 2),
      short: written(numbers.pushes[SHORT], 4), long: written(numbers.pushes[LONG], 4) }));
  }

  store.on(["large"], rebuild);
  store.on(["scores", ...PLACES_TO_FILL, "ratio", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
