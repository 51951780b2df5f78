// --- numbers: held to Python's in random states

const BATCHES = 21;
const FALL = 0.1;
const CLIP_EPSILON = 0.2;
const LARGEST_WEIGHT = 2;

const chance = (version) => 1 / (1 + Math.exp(FALL * version)); // of the bad word
const percent = (share) => Math.floor(100 * share + 0.5);

function middle(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The version that draws batch number `index`: the buffer is full before each update.
const drawnBy = (index, { capacity, updates }) => updates * Math.max(index - capacity + 1, 0);

// The gradient of the loss by the bad word's logit; a ratio below the edge has none.
function pushOf(correction, { now, weight, ratio_behaviour, ratio_proximal }) {
  const rest = 1 - chance(now);
  const clipped = (ratio) => (ratio < 1 - CLIP_EPSILON ? 0 : ratio * rest);
  return { nothing: rest, ratio: ratio_behaviour * rest, clip: clipped(ratio_behaviour),
    decoupled: weight * clipped(ratio_proximal) }[correction];
}

function outcomeOf({ capacity, updates, correction, recording }) {
  const cells = recording[`${updates}/${correction}`] ?? {};
  const far = (age) => Math.abs(age - (capacity - 1));
  const [recorded_age = null] = Object.keys(cells).map(Number)
    .sort((a, b) => far(a) - far(b) || a - b);
  const fresh = recording[`${updates}/clip`]?.["0"];
  const found = cells[recorded_age];
  return { recorded_age, answer: found ? percent(middle(found[0])) : null,
    outside: found ? 100 * middle(found[1]) : null, fresh: fresh ? percent(middle(fresh[0])) : null };
}

export function compute(state) {
  const { capacity, updates, version, correction } = state;
  const now = Math.min(version, BATCHES * updates - 1);
  const batch = Math.floor(now / updates);
  const proximal = batch * updates;
  const behaviour = drawnBy(batch, state);
  const drawn = Array.from({ length: BATCHES }, (_, index) => drawnBy(index, state));
  const waiting = Array.from({ length: capacity - 1 }, (_, index) => drawnBy(batch + 1 + index, state));
  const found = { now, proximal, behaviour, drawn, waiting,
    weight: Math.min(chance(proximal) / chance(behaviour), LARGEST_WEIGHT),
    ratio_proximal: chance(now) / chance(proximal),
    ratio_behaviour: chance(now) / chance(behaviour) };
  return { ...found, push: pushOf(correction, found), ...outcomeOf(state) };
}

// --- what it says

function outcomeWords(words, state, found) {
  if (!state.revealed) return words.outcome_hidden;
  if (found.answer === null) return words.outcome_none;
  const seeds = state.recording[`${state.updates}/${state.correction}`][found.recorded_age][0].length;
  const here = found.recorded_age === state.capacity - 1;
  return say(words, "outcome", { answer: found.answer, outside: written(found.outside, 1),
    where: say(words, here ? "here" : "near", { age: found.recorded_age }),
    many: say(words, seeds === 1 ? "one" : "some", { seeds }) });
}

function sentence(words, state, found) {
  const { now, proximal, behaviour } = found;
  return say(words, "sentence", { ...state, ...found, outcome: outcomeWords(words, state, found),
    loss: say(words, `loss_${state.correction}`, { both: now - behaviour,
      weighed: proximal - behaviour, clipped: now - proximal }) });
}

function keys(words) {
  const node = lineKey([["ppo-ink", words.legend_now], ["ppo-edge", words.legend_waiting],
    ["ppo-frame", words.legend_used], ["ppo-mark-line", words.legend_age]]);
  for (const name of Object.keys(LOSSES)) {
    node.append(make("span", { class: "ppo-key" }, draw("svg", { class: "ppo-long",
      viewBox: "0 0 28 18" }, put(lossLine(name), { d: "M0,9H28" }),
    draw("g", { transform: "translate(14,9)" }, lossMark(name))), words[name]));
  }
  return node;
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("capacity", "updates", "version", "correction", "recording",
    "revealed");
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => {
      const { updates, correction } = state();
      const { recorded_age, fresh } = compute(state());
      return say(words, fresh === null ? "guess" : "guess_fresh", { fresh, updates,
        age: recorded_age, correction: words[`asked_${correction}`] });
    },
    range: () => ({ low: 0, high: 100, whole: true }),
    answer: (said) => {
      const { answer } = compute(state());
      return say(words, said === null ? "guessed_nothing" : "guessed", { answer, guess: said });
    },
  });
  const soft = (key) => make("span", { class: "ppo-soft", "aria-hidden": "true" }, words[key]);
  const losses = choiceRow(shell, { key: "correction", name: words.correction,
    options: Object.keys(LOSSES).map((name) => [name, words[name]]) });
  const squeeze = choiceRow(shell, { key: "updates", name: words.updates,
    options: [[1, "1"], [4, "4"]] });
  const scrub = playRow(shell, { key: "version", last: () => BATCHES * store.get("updates") - 1,
    ms: () => 400, after: [soft("updates"), squeeze] });
  const list = numberList(shell, ["weight", "in_loss", "push", "right", "outside"]);
  list.node.classList.add("ppo-aside");
  body.append(...guess.nodes,
    row(sliderRow(shell, { key: "capacity", min: 1, max: 17, step: 1, digits: 0 }), soft("correction"),
      losses),
    scrub.node, make("div", { class: "ppo-panels" }, ...panels), keys(words), list.node, status,
    make("p", { class: "ppo-soft ppo-aside" }, words.about));

  let changes = [];
  function rebuild() {
    changes = [timePanel(shell, panels[0]), endsPanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    for (const change of changes) change(now, found);
    guess.update(found.answer !== null);
    scrub.update();
    const weighs = now.correction === "decoupled";
    const known = now.revealed && found.answer !== null;
    list.update([weighs ? written(found.weight, 2) : words.none,
      now.correction === "nothing" ? words.none
        : written(weighs ? found.ratio_proximal : found.ratio_behaviour, 2), written(found.push, 2),
      known ? String(found.answer) : null, known ? written(found.outside, 1) : null]);
    write(status, sentence(words, now, found));
  }

  store.on(["large", "updates"], rebuild);
  store.on(["capacity", "version", "correction", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
