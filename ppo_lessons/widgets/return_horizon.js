// --- numbers: held to Python's in random states

export function compute({ rewards, gamma, step }) {
  const rewards_to_go = Array(rewards.length);
  let following = 0;
  for (let t = rewards.length - 1; t >= 0; t -= 1) { // backwards: G_t needs G_{t+1}
    following = rewards[t] + gamma * following;
    rewards_to_go[t] = following;
  }
  return {
    rewards_to_go,
    weights: rewards.map((_, t) => (t >= step ? gamma ** (t - step) : 0)),
    horizon: gamma < 1 ? 1 / (1 - gamma) : null,
    total: rewards.reduce((sum, reward) => sum + reward, 0),
  };
}

// Ends of the axis of returns: they hold for every γ, so that they stay while γ moves.
function limitsOf(rewards) {
  let [low, high] = [0, 0];
  for (let tenths = 0; tenths <= 10; tenths += 1) {
    const { rewards_to_go } = compute({ rewards, gamma: tenths / 10, step: 0 });
    [low, high] = [Math.min(low, ...rewards_to_go), Math.max(high, ...rewards_to_go)];
  }
  const reach = (value) => [0, 0.5, 1, 2, 4, 8, 12, 16, 24].find((end) => end >= value * 0.98);
  return [reach(-low) ? -reach(-low) : 0, Math.max(reach(high), low < -0.5 ? 0 : 1)];
}

// --- the picture

const LARGEST = 2;
const NUM_STEPS = 12;
const ALL_STEPS = Array.from({ length: NUM_STEPS }, (_, t) => t);
const ACROSS = [-0.7, NUM_STEPS - 0.3];
const snap = (reward) => Number(clamp(Math.round(reward * 10) / 10, -LARGEST, LARGEST).toFixed(1));
const tick = (value) => String(value).replace("-", "−");

// The rewards, which a hand drags, and what counts of them.
function rewardPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, {
    x: ACROSS, y: [-LARGEST, LARGEST], xTicks: ALL_STEPS, yTicks: [-2, -1, 0, 1, 2], tick,
    xLabel: words.step_axis, yLabel: words.reward_axis, title: words.rewards_title,
    large: store.get("large"), xGrid: false,
  });
  const { X, Y, box, size } = plot;
  const back = plot.layer();
  const columns = ALL_STEPS.map(() => [draw("rect", { class: "ppo-bar-old" }),
    draw("rect", { class: "ppo-bar-new" })]);
  const weights = draw("path", { class: "ppo-ink" });
  const dots = ALL_STEPS.map(() => draw("circle", { class: "ppo-ink-dot", r: size / 4.5 }));
  const horizon = draw("path", { class: "ppo-mark-line" });
  const name = label({ class: "ppo-halo", "text-anchor": "middle", y: box.bottom - size * 0.5 },
    words.horizon);
  back.append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    ...columns.flat(), horizon, weights, ...dots, name);
  const items = ALL_STEPS.map((t) => {
    const { node, set } = barHandle(plot, { min: -LARGEST, max: LARGEST, at: t, width: 0.8 });
    return {
      node, nudge: 0.1, at: () => t, get: () => store.get("rewards")[t],
      move(reward) {
        const rewards = [...store.get("rewards")];
        rewards[t] = snap(reward);
        store.set({ rewards });
      },
      update: (reward) => set({ value: reward, name: say(words, "reward", { step: t }),
        text: say(words, "reward_value", { reward: written(reward, 1) }) }),
    };
  });
  handleGroup(shell, svg, plot, { name: words.group, items, along: "y" });

  return ({ rewards, step, revealed }, numbers) => {
    ALL_STEPS.forEach((t) => {
      const [reward, counted] = columns[t];
      setBar(plot, reward, { at: t, width: 0.8, to: rewards[t] });
      setBar(plot, counted, { at: t, width: 0.5, to: revealed ? rewards[t] * numbers.weights[t] : 0 });
      put(dots[t], { cx: fixed(X(t), 2), cy: fixed(Y(numbers.weights[t]), 2),
        visibility: t >= step ? "visible" : "hidden" });
      items[t].update(rewards[t]);
    });
    put(weights, { d: line(ALL_STEPS.slice(step).map((t) => [X(t), Y(numbers.weights[t])])) });
    const at = numbers.horizon === null ? Infinity : step + numbers.horizon;
    const shown = at <= ACROSS[1] ? "visible" : "hidden";
    put(horizon, { visibility: shown, d: shown === "visible"
      ? `M${fixed(X(at), 2)},${box.top}V${box.bottom}` : "M0,0" });
    const half = words.horizon.length * size * 0.3; // so that the word stays in the panel
    put(name, { visibility: shown,
      x: shown === "visible" ? fixed(clamp(X(at), box.left + half, box.right - half), 2) : 0 });
  };
}

// The return of each step; the one that is seen from is marked by its fill and its number.
function returnPanel(shell, svg, limits) {
  const { store, words } = shell;
  const [low, high] = limits;
  const far = (value) => value === 0 || Math.abs(value) > 0.14 * (high - low);
  const plot = axes(svg, {
    x: ACROSS, y: limits, xTicks: ALL_STEPS, tick, xGrid: false,
    yTicks: [...new Set([low, low / 2, 0, high / 2, high])].filter(far), xLabel: words.step_axis,
    yLabel: words.return_axis, title: words.returns_title, large: store.get("large"),
  });
  const { Y, box, size } = plot;
  const bars = ALL_STEPS.map(() => draw("rect"));
  const value = label({ class: "ppo-halo ppo-heading", x: box.left + size * 0.5,
    y: box.top + size * 1.1 });
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    ...bars, value);
  return ({ step, revealed }, { rewards_to_go }) => {
    bars.forEach((bar, t) => {
      setBar(plot, bar, { at: t, width: 0.8, to: revealed ? rewards_to_go[t] : 0 });
      put(bar, { class: t === step ? "ppo-bar-new" : "ppo-bar-open" });
    });
    write(value, `G_${step} = ${revealed ? written(rewards_to_go[step], 3) : words.hidden}`);
  };
}

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const state = () => store.pick("rewards", "gamma", "step", "revealed");
  const panels = [draw("svg"), draw("svg")];
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { gamma: written(store.get("gamma"), 2) }),
    range: () => ({ low: -NUM_STEPS * LARGEST, high: NUM_STEPS * LARGEST, whole: false }),
    answer: (said) => {
      const first = written(compute(state()).rewards_to_go[0], 4);
      return said === null ? say(words, "guessed_nothing", { first })
        : say(words, "guessed", { first, guess: String(said).replace("-", "−") });
    },
  });
  const list = make("p", { class: "ppo-tabular" });
  body.append(
    guess.nodes[0], guess.nodes[1], list, make("div", { class: "ppo-panels" }, ...panels),
    row(sliderRow(shell, { key: "gamma", min: 0, max: 1, step: 0.01 }),
      sliderRow(shell, { key: "step", min: 0, max: NUM_STEPS - 1, step: 1, digits: 0 })),
    lineKey([["ppo-bar-old", words.legend_reward], ["ppo-bar-new", words.legend_counted],
      ["ppo-ink", words.legend_weight], ["ppo-mark-line", words.legend_horizon]]),
    status, make("p", { class: "ppo-soft ppo-aside" }, words.formula),
    make("p", { class: "ppo-soft ppo-aside" }, words.help),
  );

  let updates = [];
  let limits = null;
  function rebuild() {
    limits = limitsOf(store.get("rewards"));
    updates = [rewardPanel(shell, panels[0]), returnPanel(shell, panels[1], limits)];
    update();
  }

  function update() {
    const now = state();
    const computed = compute(now);
    const needed = limitsOf(now.rewards);
    if (String(needed) !== String(limits)) { // only the panel without handles: a hand may hold one
      limits = needed;
      updates[1] = returnPanel(shell, panels[1], limits);
    }
    for (const change of updates) change(now, computed);
    guess.update();
    const horizon = computed.horizon === null ? words.endless
      : say(words, "steps", { horizon: written(computed.horizon, 1) });
    const first = written(computed.rewards_to_go[0], 4);
    const total = written(computed.total, 4);
    write(list, say(words, "list", { rewards: now.rewards.map((each) => written(each, 1)).join(", ") }));
    const key = !now.revealed ? "sentence_hidden" : now.step ? "sentence" : "sentence_first";
    write(status, say(words, key, { gamma: written(now.gamma, 2), horizon, step: now.step, first,
      total, weight: written(computed.weights.at(-1), 3),
      value: written(computed.rewards_to_go[now.step], 4) }));
  }

  store.on(["large"], rebuild);
  store.on(["rewards", "gamma", "step", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
