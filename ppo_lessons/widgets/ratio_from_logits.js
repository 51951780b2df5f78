// --- numbers: held to Python's in random states

function logSoftmax(logits) {
  const largest = Math.max(...logits);
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0));
  return logits.map((logit) => logit - largest - total);
}

const UNCHANGED = 1e-9; // two logits that moved alike give a ratio of 1 up to rounding

export function compute({ logits, logits_old }) {
  const [log_probs, log_probs_old] = [logSoftmax(logits), logSoftmax(logits_old)];
  const probabilities_old = log_probs_old.map(Math.exp);
  const ratios = log_probs.map((each, a) => Math.exp(each - log_probs_old[a]));
  const mean = (value) => probabilities_old.reduce((sum, p, a) => sum + p * value(a), 0);
  return {
    probabilities: log_probs.map(Math.exp), probabilities_old, ratios,
    mean_ratio: mean((a) => ratios[a]),
    kl: mean((a) => log_probs_old[a] - log_probs[a]),
    effective_share: 1 / mean((a) => ratios[a] ** 2),
    moved: ratios.filter((ratio) => Math.abs(ratio - 1) > UNCHANGED).length,
  };
}

// --- the picture

const ACTIONS = [..."abcd"];
const LARGEST = 3;
const ACROSS = [-0.6, ACTIONS.length - 0.4];
const PLACES = { logits_old: -0.2, logits: 0.2 }; // left and right of the action's middle
const BARS = { logits_old: "ppo-bar-old", logits: "ppo-bar-new" };
const snap = (logit) => Number(clamp(Math.round(logit * 20) / 20, -LARGEST, LARGEST).toFixed(2));
const tick = (value) => String(value).replace("-", "−");
const letter = (a) => ACTIONS[a];

// Two bars for each action, both dragged.
function logitPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, {
    x: ACROSS, y: [-LARGEST, LARGEST], xTicks: ACTIONS.map((_, a) => a), xTick: letter, tick,
    yTicks: [-3, -2, -1, 0, 1, 2, 3], xLabel: words.action_axis, yLabel: words.logit_axis,
    title: words.logits_title, large: store.get("large"), xGrid: false,
  });
  const back = plot.layer();
  back.append(draw("path", { class: "ppo-frame",
    d: `M${plot.box.left},${plot.Y(0)}H${plot.box.right}` }));
  const updates = Object.entries(PLACES).map(([key, place]) => {
    const bars = ACTIONS.map(() => draw("rect", { class: BARS[key] }));
    back.append(...bars);
    const items = ACTIONS.map((action, a) => {
      const at = a + place;
      const { node, set } = barHandle(plot, { min: -LARGEST, max: LARGEST, at, width: 0.36 });
      return {
        node, nudge: 0.05, at: () => at, get: () => store.get(key)[a],
        move(logit) {
          const logits = [...store.get(key)];
          logits[a] = snap(logit);
          store.set({ [key]: logits });
        },
        update(logit) {
          setBar(plot, bars[a], { at, width: 0.36, to: logit });
          const name = key === "logits" ? "logit_new" : "logit_old";
          set({ value: logit, name: say(words, name, { action }),
            text: say(words, "logit_value", { logit: written(logit, 2) }) });
        },
      };
    });
    const name = key === "logits" ? words.group_new : words.group_old;
    const group = handleGroup(shell, svg, plot, { name, items, along: "y" });
    group.setAttribute("class", key === "logits" ? "ppo-new-logits" : "ppo-old-logits");
    return () => store.get(key).forEach((logit, a) => items[a].update(logit));
  });
  return () => updates.forEach((update) => update());
}

// What follows from the logits: probabilities, and over each pair its ratio.
function probabilityPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, {
    x: ACROSS, y: [0, 1.1], xTicks: ACTIONS.map((_, a) => a), xTick: letter,
    yTicks: [0, 0.25, 0.5, 0.75, 1], xLabel: words.action_axis, yLabel: words.probability_axis,
    title: words.probabilities_title, large: store.get("large"), xGrid: false,
  });
  const band = draw("rect", { class: "ppo-band", y: plot.box.top,
    height: plot.box.bottom - plot.box.top, width: plot.X(0.96) - plot.X(0) });
  const pairs = ACTIONS.map(() => ({ old: draw("rect", { class: "ppo-bar-old" }),
    now: draw("rect", { class: "ppo-bar-new" }), ratio: label({ "text-anchor": "middle" }) }));
  plot.layer().append(band, ...pairs.flatMap(({ old, now, ratio }) => [old, now, ratio]));
  return ({ chosen, revealed }, { probabilities, probabilities_old, ratios }) => {
    put(band, { x: plot.X(chosen - 0.48) });
    pairs.forEach(({ old, now, ratio }, a) => {
      const shown = revealed ? probabilities[a] : 0;
      setBar(plot, old, { at: a + PLACES.logits_old, width: 0.36, to: probabilities_old[a] });
      setBar(plot, now, { at: a + PLACES.logits, width: 0.36, to: shown });
      put(ratio, { x: fixed(plot.X(a), 2), class: a === chosen ? "ppo-heading" : "",
        y: fixed(plot.Y(Math.max(shown, probabilities_old[a])) - plot.size * 0.5, 2) });
      write(ratio, revealed ? written(ratios[a], ratios[a] < 9.995 ? 2 : 1) : words.hidden);
    });
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("logits", "logits_old", "chosen", "revealed");
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => words.guess,
    range: () => ({ low: 0, high: ACTIONS.length, whole: true }),
    answer: (said) => say(words, said === null ? "guessed_nothing" : "guessed",
      { guess: said, moved: compute(state()).moved }),
  });
  const choice = choiceRow(shell, { key: "chosen", name: words.chosen,
    options: ACTIONS.map((action, a) => [a, action]) });
  choice.prepend(make("span", { "aria-hidden": "true" }, words.chosen));
  body.append(
    ...guess.nodes, make("div", { class: "ppo-panels" }, ...panels),
    row(choice, lineKey([["ppo-bar-old", words.legend_old], ["ppo-bar-new", words.legend_new]])),
    status, make("p", { class: "ppo-soft ppo-aside" }, words.formula),
    make("p", { class: "ppo-soft ppo-aside" }, words.help),
  );

  let updates = [];
  function rebuild() {
    updates = [logitPanel(shell, panels[0]), probabilityPanel(shell, panels[1])];
    update();
  }

  function update() {
    const now = state();
    const computed = compute(now);
    for (const change of updates) change(now, computed);
    guess.update();
    const { chosen, revealed, logits, logits_old } = now;
    write(status, say(words, revealed ? "sentence" : "sentence_hidden", {
      action: letter(chosen), before: written(logits_old[chosen], 2),
      after: written(logits[chosen], 2), old: written(computed.probabilities_old[chosen], 3),
      new: written(computed.probabilities[chosen], 3), ratio: written(computed.ratios[chosen], 3),
      moved: computed.moved, mean: written(computed.mean_ratio, 3), kl: written(computed.kl, 3),
      worth: written(100 * computed.effective_share, 1),
    }));
  }

  store.on(["large"], rebuild);
  store.on(["logits", "logits_old", "chosen", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
