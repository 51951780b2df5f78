// The three panels of LambdaTradeoff.
const THIRD = { width: 380, height: 340 }; // three stand side by side
const show = (node, shown) => put(node, { visibility: shown ? "visible" : "hidden" });

// Bars: how much each n-step return counts. Line: how much each TD error counts.
function weightPanel(shell, svg) {
  const { store, words } = shell;
  const end = WEIGHTS + 1;
  const plot = axes(svg, { x: [-0.8, end + 0.9], y: [0, 1], xTicks: [0, 5, 10, end],
    yTicks: [0, 0.5, 1], xTick: (k) => (k === end ? words.later : String(k)), xGrid: false,
    xLabel: words.steps_axis, yLabel: words.weight_axis, title: words.weights_title, panel: THIRD,
    large: store.get("large") });
  const { X, Y, size } = plot;
  const bars = Array.from({ length: WEIGHTS }, () => draw("rect", { class: "ppo-bar-new" }));
  const later = draw("rect", { class: "ppo-bar-open" });
  const trace = draw("path", { class: "ppo-ink" });
  const dots = bars.map(() => draw("circle", { class: "ppo-ink-dot", r: size / 5 }));
  plot.layer().append(...bars, later, trace, ...dots);
  return ({ return_weights, later_weight, trace_weights }) => {
    bars.forEach((bar, k) => setBar(plot, bar, { at: k, width: 0.72, to: return_weights[k] }));
    setBar(plot, later, { at: end, width: 0.9, to: later_weight });
    put(trace, { d: line(trace_weights.map((weight, k) => [X(k), Y(weight)])) });
    dots.forEach((dot, k) => put(dot, { cx: fixed(X(k), 2), cy: fixed(Y(trace_weights[k]), 2) }));
  };
}

// An axis from 0 to `top()`, whose numbers change while the panel and its handle stay.
function openAxes(shell, svg, { title, yLabel }) {
  const { words, store } = shell;
  const plot = axes(svg, { x: [0, 1], y: [0, 1], xTicks: [0, 0.5, 1], yTicks: [], yLabel, title,
    xLabel: words.lambda_axis, panel: THIRD, large: store.get("large") });
  const { Y, box, size } = plot;
  const ticks = [0, 0.5, 1].map((part) => {
    const number = label({ x: box.left - size * 0.4, y: Y(part) + size * 0.35,
      "text-anchor": "end" }, "");
    plot.layer().append(number, draw("line", { class: "ppo-grid", x1: box.left, x2: box.right,
      y1: Y(part), y2: Y(part) }));
    return [part, number];
  });
  const upTo = (top) => ticks.forEach(([part, number]) =>
    write(number, part === 0.5 ? "" : String(Number((part * top).toPrecision(3))))); // room for a name
  // A curve over λ; what is higher than the panel is cut off at its edge.
  const curve = (values, top) => line(values.flatMap((value, at) => {
    const [x, y] = [at / POINTS, value / top];
    if (y <= 1) return [[plot.X(x), Y(y)]];
    const inside = [at - 1, at + 1].find((next) => values[next] <= top);
    if (inside === undefined) return [];
    const share = (top - values[inside]) / (value - values[inside]);
    return [[plot.X((inside + share * (at - inside)) / POINTS), Y(1)]];
  }));
  const rule = draw("path", { class: "ppo-frame" });
  plot.layer().append(rule);
  const mark = (weight) => put(rule, { d: `M${fixed(plot.X(weight), 2)},${box.top}V${box.bottom}` });
  return { ...plot, plot, upTo, curve, mark };
}

function roundUp(value, steps = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]) {
  const power = 10 ** Math.floor(Math.log10(value));
  return steps.find((step) => step * power >= value) * power;
}

// The squared error and its two parts over λ; the handle stands above, so it betrays nothing.
function errorPanel(shell, svg) {
  const { store, words } = shell;
  const { X, Y, box, size, layer, plot, upTo, curve, mark: markHere } = openAxes(shell, svg,
    { title: words.error_title, yLabel: words.error_axis });
  const bias = draw("path", { class: "ppo-unclipped" });
  const variance = draw("path", { class: "ppo-mark-line" });
  const error = draw("path", { class: "ppo-new" });
  const here = draw("circle", { class: "ppo-ink-dot", r: size / 2.6 });
  const best = draw("path", { class: "ppo-mark", d: MARKS.hidden, "data-kind": "hidden" });
  const name = label({ class: "ppo-halo ppo-heading", "text-anchor": "middle" }, "");
  const said = draw("path", { class: "ppo-edge" });
  const saidName = label({ class: "ppo-halo", y: box.top + size * 1.4 }, words.your_guess);
  const shown = draw("g", {}, bias, variance, error, said, saidName, best, here, name);
  layer().append(shown);
  const { node, mark, set } = pointHandle({ min: 0, max: 1 });
  put(mark, { d: MARKS.push, "data-kind": "push" });
  const move = (weight) => store.set({ gae_lambda: clamp(nearest(weight), 0, POINTS) / POINTS });
  const group = handleGroup(shell, svg, plot, { name: words.group, items: [{ node, move,
    nudge: 1 / POINTS, get: () => store.get("gae_lambda") }] });
  group.prepend(draw("rect", { class: "ppo-hit", x: box.left, y: box.top, cursor: "ew-resize",
    width: box.right - box.left, height: box.bottom - box.top })); // the hand may grab anywhere
  let top = 1;

  return {
    redraw({ num_episodes, guess, revealed }, curves, found) {
      const errors = errorsOf(curves, num_episodes);
      top = roundUp(Math.min(2.2 * errors[0], Math.max(...errors)));
      upTo(top);
      put(bias, { d: curve(curves[0], top) });
      put(variance, { d: curve(curves[1].map((value) => value / num_episodes), top) });
      put(error, { d: curve(errors, top) });
      const [x, y] = [X(found.best_lambda), Y(found.best_error / top)];
      put(best, { transform: `translate(${fixed(x, 2)},${fixed(y, 2)}) scale(${size / 13})` });
      put(name, { x: clamp(x, box.left + size * 3.6, box.right - size * 3.4), y: y - size });
      write(name, say(words, "best", { best: written(found.best_lambda, 2) }));
      show(shown, revealed);
      for (const each of [said, saidName]) show(each, revealed && guess !== null);
      if (guess === null) return;
      put(said, { d: `M${fixed(X(guess), 2)},${box.top}V${box.bottom}` });
      put(saidName, { x: X(guess) + (guess > 0.5 ? -1 : 1) * size * 0.4,
        "text-anchor": guess > 0.5 ? "end" : "start" });
    },
    update(weight, found) {
      markHere(weight);
      put(here, { cx: fixed(X(weight), 2), cy: fixed(Y(Math.min(found.squared_error / top, 1)), 2) });
      set({ x: X(weight), y: box.top, name: words.handle, value: weight,
        text: say(words, "handle_value", { weight: written(weight, 2) }) });
    },
  };
}

// The bias of the gradient and that of the advantage: one may fall while the other rises.
function biasPanel(shell, svg) {
  const { words } = shell;
  const { X, Y, size, layer, upTo, curve, mark } = openAxes(shell, svg,
    { title: words.bias_title, yLabel: words.bias_axis });
  const gradient = draw("path", { class: "ppo-unclipped" });
  const advantage = draw("path", { class: "ppo-curve" });
  const dots = [0, 1].map(() => draw("circle", { class: "ppo-ink-dot", r: size / 3.4 }));
  const shown = draw("g", {}, gradient, draw("g", { class: "ppo-worse" }, advantage), ...dots);
  layer().append(shown);
  let top = 1;
  return {
    redraw({ revealed }, [bias, , advantageBias]) {
      const [one, two] = [bias, advantageBias].map((values) => values.map(Math.sqrt));
      top = [0.1, 0.2, 0.3, 0.6, 1.2].find((end) => end >= Math.max(...one, ...two));
      upTo(top);
      put(gradient, { d: curve(one, top) });
      put(advantage, { d: curve(two, top) });
      show(shown, revealed);
    },
    update(weight, { gradient_bias, advantage_bias }) {
      mark(weight);
      [gradient_bias, advantage_bias].forEach((bias, index) =>
        put(dots[index], { cx: fixed(X(weight), 2), cy: fixed(Y(bias / top), 2) }));
    },
  };
}
