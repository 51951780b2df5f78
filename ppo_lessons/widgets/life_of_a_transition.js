// --- numbers: held to Python's in random states

export function compute({ sample, recording }) {
  const { gamma, gae_lambda, clip_epsilon, samples } = recording;
  const record = samples[sample];
  const { rewards, values, next_values, terminated, log_prob_old, visits } = record;
  const last = rewards.length - 1;
  const td_errors = rewards.map((reward, later) => {
    const counted = terminated && later === last ? 0 : next_values[later];
    return reward + gamma * counted - values[later];
  });
  const weighted = td_errors.map((error, later) => (gamma * gae_lambda) ** later * error);
  let advantage = 0;
  for (let later = last; later >= 0; later -= 1) { // backwards, as GAE is computed
    advantage = td_errors[later] + gamma * gae_lambda * advantage;
  }
  const ratios = visits.map(({ log_prob }) => Math.exp(log_prob - log_prob_old));
  const pushes = visits.map(({ normalized_advantage }, index) =>
    !((ratios[index] > 1 + clip_epsilon && normalized_advantage > 0)
      || (ratios[index] < 1 - clip_epsilon && normalized_advantage < 0)));
  return { td_errors, weighted, advantage, target: advantage + values[0], ratios, pushes,
    total: pushes.filter(Boolean).length, before: Math.exp(log_prob_old),
    after: Math.exp(record.log_prob_new) };
}

// Two digits, without the rounding noise in which Python's sums may differ.
const neat = (value) => written(Number(value.toFixed(9)), 2);

// --- the whole

const SAMPLES = ["good", "bad", "clipped", "last"];

// All that the words ask for.
function factsOf(words, { epoch }, record, numbers) {
  const normalized = record.visits[epoch - 1].normalized_advantage;
  const did = !numbers.pushes[epoch - 1] ? "silent" : normalized > 0 ? "up" : "down";
  const falls = record.terminated && record.rewards.length === 1;
  return {
    t: record.t, n: record.n, action: words[["left", "right"][record.action]], falls,
    angle: written(record.observation[2], 3), before: neat(numbers.before),
    after: neat(numbers.after), log_prob_old: neat(record.log_prob_old),
    reward: written(record.rewards[0], 0), ending: falls ? words.fell : words.goes_on,
    value: neat(record.values[0]), following: neat(record.next_values[0]),
    td_error: neat(numbers.td_errors[0]), count: numbers.td_errors.length - 1,
    advantage: neat(numbers.advantage), target: neat(numbers.target), epoch,
    ratio: neat(numbers.ratios[epoch - 1]), normalized: neat(normalized), did: words[`did_${did}`],
    pushed: numbers.pushes.slice(0, epoch).filter(Boolean).length,
  };
}

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const keys = ["sample", "stage", "epoch", "recording", "revealed"];
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => words.guess,
    range: () => ({ low: 0, high: 8, whole: true }),
    answer: (said) => say(words, said === null ? "guessed_nothing" : "guessed",
      { guess: said, total: compute(store.pick(...keys)).total }),
  });
  const choose = (key, options) => row(
    make("span", { class: "ppo-soft", "aria-hidden": "true" }, words[key]),
    choiceRow(shell, { key, name: words[key], options }));
  const keysOf = {
    score: lineKey([["ppo-bar-old", words.legend_error], ["ppo-bar-new", words.legend_weighted]]),
    renew: lineKey([["ppo-bar-old", words.legend_old], ["ppo-bar-new", words.legend_chosen]]),
    squeeze: markKey([["push", words.legend_push], ["silent", words.legend_silent]]),
  };
  const scrub = playRow(shell, { key: "epoch", first: 1, last: () => 8, ms: () => 700,
    after: [keysOf.squeeze, lineKey([["ppo-ink", words.legend_edge]])] });
  body.append(...guess.nodes,
    row(choose("sample", SAMPLES.map((each) => [each, words[`sample_${each}`]])),
      choose("stage", STAGES.map((each) => [each, words[each]]))),
    make("div", { class: "ppo-panels" }, ...panels), scrub.node,
    keysOf.score, keysOf.renew, status, make("p", { class: "ppo-soft ppo-aside" }, words.about));

  let updates = [];
  function rebuild() {
    updates = [cardPanel(shell, panels[0]), PICTURES[store.get("stage")](shell, panels[1])];
    update();
  }

  function update() {
    const state = store.pick(...keys);
    const record = state.recording.samples[state.sample];
    const numbers = compute(state);
    const facts = factsOf(words, state, record, numbers);
    for (const change of updates) change(state, record, facts, numbers);
    guess.update();
    scrub.update();
    scrub.node.hidden = !state.revealed || state.stage !== "squeeze";
    keysOf.score.hidden = state.stage !== "score";
    keysOf.renew.hidden = state.stage !== "renew" && state.stage !== "collect";
    const kind = state.stage === "score" && facts.falls ? "score_last" : state.stage;
    write(status, say(words, state.revealed ? `sentence_${kind}` : "sentence_hidden", facts));
  }

  store.on(["large", "stage"], rebuild);
  store.on(["sample", "epoch", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
