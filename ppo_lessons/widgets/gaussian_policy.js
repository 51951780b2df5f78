// --- numbers: held to Python's in random states

const LIMIT = 2;
const EPSILON = 0.2;
const LARGEST_RATIO = 1000;

// 2/√π·e^(−x²)·Σ 2ⁿ·x^(2n+1)/(1·3·5···(2n+1)): all terms have one sign, so none are lost.
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

export function below(x, { mean, log_std }) {
  return 0.5 * (1 + erf((x - mean) / (Math.exp(log_std) * Math.SQRT2)));
}

export function logProb(action, { mean, log_std }) {
  return -0.5 * ((action - mean) / Math.exp(log_std)) ** 2 - log_std - 0.5 * Math.log(2 * Math.PI);
}

// Where the log-ratio q2·a² + q1·a + q0 lies between two numbers: intervals from left to right.
export function ratioInside(low, high, old, now) {
  const [before, after] = [Math.exp(-2 * old.log_std), Math.exp(-2 * now.log_std)];
  let q2 = (before - after) / 2;
  let q1 = now.mean * after - old.mean * before;
  let q0 = (old.mean * old.mean * before - now.mean * now.mean * after) / 2 + old.log_std
    - now.log_std;
  if (q2 === 0 && q1 === 0) return low <= q0 && q0 <= high ? [[-Infinity, Infinity]] : [];
  if (q2 === 0) return [[(low - q0) / q1, (high - q0) / q1].sort((a, b) => a - b)];
  if (q2 < 0) [q2, q1, q0, low, high] = [-q2, -q1, -q0, -high, -low];
  const middle = -q1 / (2 * q2);
  const lowest = q0 - (q1 * q1) / (4 * q2);
  if (lowest > high) return [];
  const outer = Math.sqrt((high - lowest) / q2);
  if (lowest >= low) return [[middle - outer, middle + outer]];
  const inner = Math.sqrt((low - lowest) / q2);
  return [[middle - outer, middle - inner], [middle + inner, middle + outer]];
}

const policies = ({ mean, log_std, mean_old, log_std_old }) => [
  { mean: mean_old, log_std: log_std_old }, { mean, log_std }];
const insideOf = (old, now) => ratioInside(Math.log(1 - EPSILON), Math.log(1 + EPSILON), old, now);

export function compute(state) {
  const [old, now] = policies(state);
  const [log_prob_old, log_prob] = [logProb(state.action, old), logProb(state.action, now)];
  const inside = insideOf(old, now);
  const cut = (policy) => below(-LIMIT, policy) + 1 - below(LIMIT, policy);
  const squares = Math.exp(2 * old.log_std) + (old.mean - now.mean) ** 2;
  return {
    log_prob, log_prob_old, ratio: Math.exp(log_prob - log_prob_old),
    kl: now.log_std - old.log_std + (squares * Math.exp(-2 * now.log_std)) / 2 - 0.5,
    inside: inside.map((ends) => ends.map((end) => (Number.isFinite(end) ? end : null))),
    share_inside: inside.reduce((sum, [from, to]) => sum + below(to, old) - below(from, old), 0),
    beyond: cut(now), beyond_old: cut(old),
  };
}

// --- words

const NAMES = ["mean_old", "log_std_old", "mean", "log_std", "action"];
const ratioText = (ratio) => (ratio < LARGEST_RATIO ? written(ratio, 3) : `> ${LARGEST_RATIO}`);
const hundred = (share) => written(100 * share, 1);

function whereText(words, inside) {
  if (!inside.length) return words.nowhere;
  if (inside[0][0] === null) return words.everywhere;
  return inside.map(([low, high]) => say(words, "between",
    { low: written(low, 2), high: written(high, 2) })).join(words.and);
}

function sentence(words, state, found) {
  return say(words, state.revealed ? "sentence" : "sentence_hidden", {
    mean_old: written(state.mean_old, 2), std_old: written(Math.exp(state.log_std_old), 2),
    mean: written(state.mean, 2), std: written(Math.exp(state.log_std), 2),
    action: written(state.action, 2), old: written(found.log_prob_old, 3),
    new: written(found.log_prob, 3), ratio: ratioText(found.ratio), kl: written(found.kl, 3),
    where: whereText(words, found.inside), share: hundred(found.share_inside),
    beyond: hundred(found.beyond), beyond_old: hundred(found.beyond_old),
  });
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick(...NAMES, "revealed");
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => words.guess,
    range: () => ({ low: 0, high: 100, whole: false }),
    answer: (said) => say(words, said === null ? "guessed_nothing" : "guessed",
      { guess: said, share: hundred(compute(state()).share_inside) }),
  });
  const list = numberList(shell, ["log_prob_old", "log_prob", "ratio", "kl", "share_inside",
    "beyond"]);
  list.node.classList.add("ppo-aside"); // on a projector the sentence says the same
  body.append(
    ...guess.nodes, make("div", { class: "ppo-panels" }, ...panels),
    row(sliderRow(shell, { key: "mean_old", min: -2, max: 2, step: 0.05 }),
      sliderRow(shell, { key: "log_std_old", min: -1.5, max: 0.5, step: 0.05 })),
    policyKey(words), list.node, status,
    make("p", { class: "ppo-soft ppo-aside" }, words.formula),
    make("p", { class: "ppo-soft ppo-aside" }, words.help),
  );

  let updates = [];
  function rebuild() {
    updates = [densityPanel(shell, panels[0]), ratioPanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    for (const change of updates) change(now, found);
    guess.update();
    const nats = (number) => say(words, "nats", { number: written(number, 3) });
    const share = (number) => say(words, "of_hundred", { number: hundred(number) });
    const shown = (text) => (now.revealed ? text : null);
    list.update([nats(found.log_prob_old), nats(found.log_prob), shown(ratioText(found.ratio)),
      shown(nats(found.kl)), shown(share(found.share_inside)), share(found.beyond)]);
    write(status, sentence(words, now, found));
  }

  store.on(["large"], rebuild);
  store.on([...NAMES, "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
