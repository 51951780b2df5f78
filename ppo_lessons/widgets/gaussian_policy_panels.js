// Panels of GaussianPolicy. The old policy is dashed, the new one solid; a diamond is the mean, a
// triangle the mean + σ, a circle the action.
const REACH = 4; // the panels show actions from −4 to 4
const TOPS = [0.5, 1, 2]; // heights of the density panel
const TOP_RATIO = 2.5;
const TICKS = [-3, -2, -1, 0, 1, 2, 3];
const OLD_CURVE = { class: "ppo-unclipped" };
const NEW_CURVE = { class: "ppo-new" };
const CUT = { fill: "none", stroke: "var(--ppo-worse)", "stroke-width": 2 };
const INSIDE = { fill: "none", stroke: "var(--ppo-ink)", "stroke-width": 6 };

const tick = (value) => String(value).replace("-", "−");
const snapTo = (value, low, high) => Number(clamp(Math.round(value * 20) / 20, low, high).toFixed(2));
const density = (action, policy) => Math.exp(logProb(action, policy));

function spaced(from, to, count) {
  return Array.from({ length: count + 1 }, (_, index) => from + ((to - from) * index) / count);
}

// The parts of intervals that the panels show.
function shownParts(intervals) {
  return intervals.map(([from, to]) => [Math.max(from, -REACH), Math.min(to, REACH)])
    .filter(([from, to]) => from < to);
}

function densityPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: [-REACH, REACH], y: [-0.34, 1.08], xTicks: TICKS, yTicks: [],
    xLabel: words.action_axis, yLabel: words.density_axis, tick, title: words.density_title,
    large: store.get("large") });
  const { X, Y, box, size } = plot;
  const rows = { policy: Y(-0.12), action: Y(-0.26) }; // under the curves, where nothing is covered
  const scale = [0, 0.5, 1].map((part) => [part, label({ x: box.left - size * 0.4,
    y: Y(part) + size * 0.35, "text-anchor": "end" }, "")]);
  const area = draw("path", { class: "ppo-band" });
  const comb = draw("path", CUT);
  const limits = draw("path", { class: "ppo-mark-line",
    d: [-LIMIT, LIMIT].map((at) => `M${X(at)},${box.top}V${Y(0)}`).join("") });
  const zero = draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` });
  const [old, now] = [draw("path", OLD_CURVE), draw("path", NEW_CURVE)];
  const stem = draw("path", { class: "ppo-ink" });
  const spread = draw("path", { ...NEW_CURVE, "stroke-width": 2 });
  const dots = [draw("circle", { r: size / 4, fill: "var(--ppo-old)" }),
    draw("circle", { r: size / 4, class: "ppo-dot" })];
  plot.layer().append(area, ...scale.map(([, text]) => text), comb, limits, zero, old, now, stem,
    ...dots, spread);
  const places = spaced(-REACH, REACH, 160);

  const item = (kind, range, { get, move, nudge, update }) => {
    const { node, mark, set } = pointHandle(range);
    put(mark, { d: MARKS[kind], "data-kind": kind });
    return { node, get, move, get nudge() { return nudge(); }, update: (now) => update(now, set) };
  };
  const by = () => 0.05;
  const mean = item("hidden", { min: -2, max: 2 }, {
    get: () => store.get("mean"), nudge: by,
    move: (value) => store.set({ mean: snapTo(value, -2, 2) }),
    update: (state, set) => set({ x: X(state.mean), y: rows.policy, name: words.mean,
      value: state.mean, text: say(words, "mean_value", { mean: written(state.mean, 2) }) }),
  });
  const std = item("back", { min: -1.5, max: 0.5 }, {
    get: () => store.get("mean") + Math.exp(store.get("log_std")),
    nudge: () => Math.exp(store.get("log_std")) * (Math.exp(0.05) - 1), // to the next log σ
    move: (value) => store.set({ log_std: snapTo(Math.log(Math.max(value - store.get("mean"), 0.01)),
      -1.5, 0.5) }),
    update: (state, set) => set({ x: X(state.mean + Math.exp(state.log_std)), y: rows.policy,
      name: words.std, value: state.log_std, text: say(words, "std_value",
        { log_std: written(state.log_std, 2), std: written(Math.exp(state.log_std), 2) }) }),
  });
  const action = item("push", { min: -3.5, max: 3.5 }, {
    get: () => store.get("action"), nudge: by,
    move: (value) => store.set({ action: snapTo(value, -3.5, 3.5) }),
    update: (state, set) => set({ x: X(state.action), y: rows.action, name: words.action,
      value: state.action, text: say(words, "action_value", { action: written(state.action, 2) }) }),
  });
  put(handleGroup(shell, svg, plot, { name: words.group_new, items: [mean, std] }),
    { class: "ppo-new-policy" });
  put(handleGroup(shell, svg, plot, { name: words.group_action, items: [action] }),
    { class: "ppo-action" });

  return (state, found) => {
    const [before, after] = policies(state);
    const peak = Math.max(density(before.mean, before), density(after.mean, after));
    const top = TOPS.find((each) => each >= peak) ?? TOPS.at(-1);
    const height = (place, policy) => Y(density(place, policy) / top);
    const curve = (policy, at = places) => line(at.map((place) => [X(place), height(place, policy)]));
    for (const [part, text] of scale) write(text, String(part * top));
    put(old, { d: curve(before) });
    put(now, { d: curve(after) });
    put(area, { visibility: state.revealed ? "visible" : "hidden",
      d: shownParts(insideOf(before, after)).map(([from, to]) =>
        `${curve(before, spaced(from, to, 40))}L${X(to)},${Y(0)}L${X(from)},${Y(0)}Z`).join("") });
    const teeth = places.filter((place) => Math.abs(place) > LIMIT && Math.round(place * 20) % 2 === 0);
    put(comb, { d: teeth.map((place) => `M${fixed(X(place), 2)},${fixed(Y(0), 2)}V${fixed(
      height(place, after), 2)}`).join("") });
    [before, after].forEach((policy, index) => put(dots[index],
      { cx: fixed(X(state.action), 2), cy: fixed(height(state.action, policy), 2) }));
    const tallest = Math.min(height(state.action, before), height(state.action, after));
    put(stem, { d: `M${X(state.action)},${rows.action}V${tallest}` });
    put(spread, { d: `M${X(state.mean)},${rows.policy}H${X(state.mean + Math.exp(state.log_std))}` });
    for (const each of [mean, std, action]) each.update(state);
  };
}

function ratioPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: [-REACH, REACH], y: [0, TOP_RATIO], xTicks: TICKS,
    yTicks: [0, 0.8, 1.2, 2], xLabel: words.action_axis, yLabel: words.ratio_axis, tick,
    title: words.ratio_title, large: store.get("large") });
  const { X, Y, box, size } = plot;
  const band = draw("rect", { class: "ppo-band", x: box.left, width: box.right - box.left,
    y: Y(1 + EPSILON), height: Y(1 - EPSILON) - Y(1 + EPSILON) });
  const one = draw("path", { class: "ppo-frame", d: `M${box.left},${Y(1)}H${box.right}` });
  const [curve, inside] = [draw("path", NEW_CURVE), draw("path", INSIDE)];
  const sides = draw("path", { class: "ppo-edge" });
  const stem = draw("path", { class: "ppo-ink" });
  const mark = draw("path", { class: "ppo-mark", d: MARKS.push, "data-kind": "push" });
  const name = label({ class: "ppo-halo ppo-heading" }, "");
  plot.layer().append(band, one, sides, inside, stem, curve, mark, name);

  return (state, found) => {
    const [before, after] = policies(state);
    const seen = state.revealed ? "visible" : "hidden";
    const ratioAt = (place) => Math.exp(logProb(place, after) - logProb(place, before));
    const low = shownParts(ratioInside(-Infinity, Math.log(TOP_RATIO), before, after));
    put(curve, { visibility: seen, d: low.map(([from, to]) => line(spaced(from, to, 100)
      .map((place) => [X(place), Y(Math.min(ratioAt(place), TOP_RATIO))]))).join("") });
    const parts = shownParts(insideOf(before, after));
    put(inside, { visibility: seen,
      d: parts.map(([from, to]) => `M${X(from)},${Y(0) - 3}H${X(to)}`).join("") });
    put(sides, { visibility: seen, d: parts.flatMap((ends) => ends.map((end) =>
      `M${X(end)},${Y(0)}V${Y(Math.min(ratioAt(end), 1 + EPSILON))}`)).join("") });
    const y = Y(Math.min(found.ratio, TOP_RATIO));
    put(stem, { visibility: seen, d: `M${X(state.action)},${Y(0)}V${y}` });
    put(mark, { visibility: seen, transform: `translate(${fixed(X(state.action), 2)},${fixed(y, 2)})` });
    // over a rising curve there is room to its left, beyond the top to the right of where it left
    const rising = ratioAt(state.action + 0.01) > ratioAt(state.action - 0.01);
    const right = state.action < -2.4 || (state.action < 2.2 && rising === found.ratio > TOP_RATIO);
    put(name, { visibility: seen, x: X(state.action) + (right ? 1 : -1) * size * 0.7,
      y: Math.max(y - size * 0.5, box.top + size), "text-anchor": right ? "start" : "end" });
    write(name, found.ratio > TOP_RATIO ? `↑ ${ratioText(found.ratio)}` : ratioText(found.ratio));
  };
}

function policyKey(words) {
  const node = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  const shape = (kind) => draw("path", { class: "ppo-mark", d: MARKS[kind], "data-kind": kind,
    transform: "translate(14,9)" });
  const entries = [
    [words.legend_old, draw("path", { ...OLD_CURVE, d: "M0,9H28" })],
    [words.legend_new, draw("path", { ...NEW_CURVE, d: "M0,9H28" })],
    [words.legend_mean, shape("hidden")], [words.legend_std, shape("back")],
    [words.legend_action, shape("push")],
    [words.legend_inside, draw("rect", { class: "ppo-band", x: 2, y: 1, width: 24, height: 11 }),
      draw("path", { ...INSIDE, d: "M2,14H26" })],
    [words.legend_beyond, draw("path", { ...CUT, d: "M6,16V4M12,16V7M18,16V10M24,16V12" })],
  ];
  for (const [text, ...pieces] of entries) {
    node.append(make("span", { class: "ppo-key" }, draw("svg", { class: "ppo-long",
      viewBox: "0 0 28 18" }, ...pieces), text));
  }
  return node;
}
