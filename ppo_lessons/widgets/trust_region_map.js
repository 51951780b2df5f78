// --- numbers: held to Python's by tests/test_widgets_browser.py

export function klOf(old, policy) {
  return old.reduce((sum, p, a) => sum + p * (Math.log(p) - Math.log(policy[a])), 0);
}

export function gainOf(old, advantages, policy) {
  return advantages.reduce((sum, advantage, a) => sum + (policy[a] - old[a]) * advantage, 0);
}

function stepTo(old, step) {
  const logits = old.map((p, a) => Math.log(p) + step[a]);
  const top = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function centred(old, advantages) {
  const mean = old.reduce((sum, p, a) => sum + p * advantages[a], 0);
  return advantages.map((advantage) => advantage - mean);
}

export function plainStep(old, advantages, rate) {
  const over = centred(old, advantages);
  return stepTo(old, old.map((p, a) => rate * p * over[a]));
}

// F⁺·∇L is the centred advantage, up to a shift of all logits; its quadratic KL is half a variance.
export function naturalStep(old, advantages, radius) {
  const over = centred(old, advantages);
  const variance = old.reduce((sum, p, a) => sum + p * over[a] ** 2, 0);
  const length = Math.sqrt((2 * radius) / variance);
  return stepTo(old, over.map((each) => length * each));
}

export function clipEnded(ratio, advantage, epsilon) {
  return advantage > 0 ? ratio > 1 + epsilon : ratio < 1 - epsilon;
}

export function compute({ grids, situation, max_kl, learning_rate, beta, moved }) {
  const { policy_old: old, advantages, sampled, penalty, edge_beta: edges } = grids.by[situation];
  const policies = {
    plain: plainStep(old, advantages, learning_rate),
    natural: naturalStep(old, advantages, max_kl),
    penalty: penalty[grids.prices.indexOf(beta)],
  };
  const found = {};
  for (const [name, policy] of Object.entries(policies)) {
    found[name] = policy;
    found[`kl_${name}`] = klOf(old, policy);
    found[`gain_${name}`] = gainOf(old, advantages, policy);
  }
  const ratios = moved.map((p, a) => p / old[a]);
  return { ...found, ratios, times: found.kl_plain / max_kl, kl_moved: klOf(old, moved),
    edge_beta: edges[grids.radii.indexOf(max_kl)],
    ended: ratios.map((ratio, a) => (sampled[a]
      ? clipEnded(ratio, advantages[a], grids.clip_epsilon) : null)) };
}

// A hand reaches hundredths; each action keeps one.
export function snapPolicy(b, c) {
  const third = clamp(Math.round(c * 100), 1, 98);
  const second = clamp(Math.round(b * 100), 1, 99 - third);
  return [100 - second - third, second, third].map((each) => each / 100);
}

const STEPS = ["plain", "natural", "penalty"];
const VIEWS = ["steps", "clip"];
const SITUATIONS = ["middle", "corner", "unseen"];

function short(value) {
  return written(value, value >= 0.1 ? 3 : value >= 0.01 ? 4 : 5);
}

function times(value) {
  return value >= 1 ? written(value, 1) : short(value);
}

function policyText(policy) {
  return `(${policy.map((each) => written(each, 3).replace(/0+$/, "")).join(", ")})`;
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const grids = store.get("grids");
  const numbers = () => compute(store.pick("grids", "situation", "max_kl", "learning_rate", "beta",
    "moved"));
  const choose = (key, options) => row(make("span", { class: "ppo-soft", "aria-hidden": "true" },
    words[key]), choiceRow(shell, { key, name: words[key], options }));
  const slider = (key, values) => gridSlider(shell, { key, values, text: words[key],
    width: 150 });
  const guess = guessRows(shell, {
    question: () => words.guess,
    range: () => ({ low: 0, high: 1000, whole: false }),
    answer: (said) => say(words, said === null ? "guessed_nothing" : "guessed",
      { guess: said, times: times(numbers().times) }),
  });
  const stepSliders = [slider("learning_rate", grids.rates), slider("beta", grids.prices)];
  const stepList = numberList(shell, ["kl_plain", "kl_natural", "kl_penalty", "edge_beta"]);
  const clipList = numberList(shell, ["kl_moved"]);
  // on a projector the sentence says the same
  for (const list of [stepList, clipList]) list.node.classList.add("ppo-aside");
  const [stepKey, clipKey] = [stepKeys(words), clipKeys(words)];
  const help = make("p", { class: "ppo-soft ppo-aside" }, words.help);
  const formula = make("p", { class: "ppo-soft ppo-aside" }, words.formula);
  const panels = [draw("svg"), draw("svg")];
  body.append(
    row(choose("view", VIEWS.map((each) => [each, words[`view_${each}`]])),
      choose("situation", SITUATIONS.map((each) => [each, words[`situation_${each}`]]))),
    ...guess.nodes,
    make("div", { class: "ppo-panels" }, ...panels), row(slider("max_kl", grids.radii),
      ...stepSliders), stepKey, clipKey, stepList.node, clipList.node, status, formula, help,
  );

  let updates = [];
  function rebuild() {
    const steps = store.get("view") === "steps";
    for (const node of [...stepSliders, stepKey, stepList.node, formula]) node.hidden = !steps;
    for (const node of [clipKey, clipList.node, help]) node.hidden = steps;
    updates = steps ? [stepMap(shell, panels[0]), gainPanel(shell, panels[1])]
      : [clipMap(shell, panels[0]), ratioPanel(shell, panels[1])];
    update();
  }

  function update() {
    const state = store.pick("view", "situation", "max_kl", "learning_rate", "beta", "moved", "guess",
      "revealed");
    const found = numbers();
    for (const change of updates) change(state, found);
    guess.update(state.view === "steps");
    const nats = (kl) => say(words, "nats", { kl: short(kl) });
    stepList.update([state.revealed ? nats(found.kl_plain) : null, nats(found.kl_natural),
      nats(found.kl_penalty), written(found.edge_beta, 2)]);
    clipList.update([nats(found.kl_moved)]);
    write(status, sentence(state, found));
  }

  function sentence(state, found) {
    const where = (kl) => words[kl <= state.max_kl ? "inside" : "outside"];
    const start = say(words, "old", { policy: policyText(grids.by[state.situation].policy_old),
      radius: state.max_kl });
    if (state.view === "clip") {
      const ratios = found.ratios.map((ratio, a) => say(words, found.ended[a] === null
        ? "ratio_unseen" : found.ended[a] ? "ratio_ended" : "ratio_open",
      { action: "abc"[a], ratio: short(ratio) })).join(", ");
      return `${start} ${say(words, "clip_sentence", { policy: policyText(state.moved),
        kl: short(found.kl_moved), where: where(found.kl_moved), ratios })}`;
    }
    const setting = { plain: state.learning_rate, natural: state.max_kl, penalty: state.beta };
    const parts = STEPS.map((name) => (name === "plain" && !state.revealed
      ? say(words, "sentence_hidden", { setting: state.learning_rate })
      : say(words, `${name}_sentence`, { setting: setting[name], kl: short(found[`kl_${name}`]),
        where: where(found[`kl_${name}`]) })));
    return [start, ...parts].join(" ");
  }

  store.on(["view", "large"], rebuild);
  store.on(["situation", "max_kl", "learning_rate", "beta", "moved", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
