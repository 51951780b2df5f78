// Views of ClipRegion that play what Python computed: two ways out of the box, one blind spot.

// A path of optimiser steps: on the objective, and over the steps.
function pathPanels(shell, [left, right], view) {
  const { store, words } = shell;
  const { ratios, pushes } = store.get("ways")[view];
  const large = store.get("large");
  const last = ratios.length - 1;
  const top = view === "one_step" ? 3 : 2;
  left.setAttribute("class", "ppo-better");
  right.setAttribute("class", "");
  const one = axes(left, { x: [0, top], y: [0, top], xTicks: [0, 0.5, 1, 1.5, 2, 2.5, 3].filter(
    (tick) => tick <= top), yTicks: [0, 0.5, 1, 1.5, 2, 2.5, 3].filter((tick) => tick <= top),
  xLabel: words.ratio, yLabel: words.objective_axis, title: words.path_title, large });
  const two = axes(right, { x: [0, last], y: [0.8, top],
    xTicks: last === 1 ? [0, 1] : [0, 10, 20, 30, 40, 50, 60].filter((tick) => tick <= last),
    yTicks: [0.8, 1, 1.2, 1.6, 2, 2.4, 2.8].filter((tick) => tick <= top),
    xLabel: words.step_axis, yLabel: words.ratio_axis, title: words.path_right, large });
  one.layer().append(
    draw("rect", { class: "ppo-band", x: one.X(0.8), width: one.X(1.2) - one.X(0.8), y: one.box.top,
      height: one.box.bottom - one.box.top }),
    draw("path", { class: "ppo-unclipped", d: line([[one.X(0), one.Y(0)], [one.X(top),
      one.Y(top)]]) }),
    draw("path", { class: "ppo-curve", d: line([[0, 0], [1.2, 1.2], [top, 1.2]].map(
      ([x, y]) => [one.X(x), one.Y(y)])) }),
    label({ class: "ppo-halo ppo-curve-name", x: one.box.right, y: one.Y(1.2) + one.size * 1.4,
      "text-anchor": "end" }, words.flat),
    label({ "text-anchor": "middle", x: one.X(1), y: one.box.bottom - one.size * 0.5 }, words.band),
  );
  two.layer().append(
    draw("rect", { class: "ppo-band", x: two.box.left, width: two.box.right - two.box.left,
      y: two.Y(1.2), height: two.Y(0.8) - two.Y(1.2) }),
    label({ x: two.box.right - two.size * 0.4, y: two.Y(1) + two.size * 0.35,
      "text-anchor": "end" }, words.band),
  );
  const trail = draw("path", { class: "ppo-new" });
  const dots = ratios.map((ratio, step) => draw("path", { class: "ppo-mark",
    transform: `translate(${two.X(step)},${two.Y(ratio)}) scale(${0.6 * two.size / 15})`, d: MARKS.push }));
  const marks = [draw("path", { class: "ppo-mark" }), draw("path", { class: "ppo-mark" })];
  two.layer().append(trail, ...dots, marks[1]);
  one.layer().append(marks[0]);

  return (step) => {
    const kind = (at) => (pushes[at] ? "push" : "silent");
    put(trail, { d: line(ratios.slice(0, step + 1).map((ratio, at) => [two.X(at),
      two.Y(ratio)])) });
    dots.forEach((dot, at) => put(dot, { d: MARKS[kind(at)], "data-kind": kind(at),
      visibility: at <= step ? "visible" : "hidden" }));
    const ratio = ratios[step];
    put(marks[0], { transform: `translate(${one.X(ratio)},${one.Y(Math.min(ratio, 1.2))}) scale(${1.4 * one.size / 15})` });
    put(marks[1], { transform: `translate(${two.X(step)},${two.Y(ratio)}) scale(${1.4 * one.size / 15})` });
    for (const mark of marks) put(mark, { d: MARKS[kind(step)], "data-kind": kind(step) });
  };
}

// Three actions, of which the batch holds two.
function unsampledPanels(shell, [left, right]) {
  const { store, words } = shell;
  const path = store.get("ways").unsampled;
  const large = store.get("large");
  left.setAttribute("class", "");
  right.setAttribute("class", "");
  const one = axes(left, { x: [0, 3], y: [0, 0.6], xTicks: [], yTicks: [0, 0.2, 0.4, 0.6],
    xLabel: words.action_axis, yLabel: "π(a)", title: words.bars_title, large });
  const two = axes(right, { x: [0, 0.2], y: [-0.02, 0.2], xTicks: [0, 0.05, 0.1, 0.15, 0.2],
    yTicks: [0, 0.05, 0.1, 0.15, 0.2], xLabel: words.rare_axis, yLabel: words.kl_axis,
    title: words.kl_title, large });
  const front = one.layer();
  const bars = path.old.map((old, index) => {
    const bar = draw("rect", { class: "ppo-bar-new", x: one.X(index + 0.5), width: one.X(0.32)
      - one.X(0) });
    const name = label({ "text-anchor": "middle", x: one.X(index + 0.5) });
    front.append(
      draw("rect", { class: "ppo-bar-old", x: one.X(index + 0.18), width: one.X(0.32) - one.X(0),
        y: one.Y(old), height: one.Y(0) - one.Y(old) }),
      bar, name,
      label({ "text-anchor": "middle", x: one.X(index + 0.5), y: one.Y(0) + one.size * 1.15 },
        "abc"[index]),
    );
    return { bar, name, old };
  });
  const at = (step, value) => [two.X(path.rare[step]), two.Y(value)];
  const dot = draw("circle", { class: "ppo-dot", r: 7 });
  two.layer().append(
    draw("path", { class: "ppo-new", d: line(path.kl.map((kl, step) => at(step, kl))) }),
    draw("path", { class: "ppo-unclipped", d: line(path.outside.map((share, step) =>
      at(step, share))) }),
    label({ class: "ppo-halo", x: two.X(0.12), y: two.Y(0.12), "text-anchor": "end" }, words.kl),
    label({ class: "ppo-halo", x: two.X(0.2), y: two.Y(0) - two.size * 0.6, "text-anchor": "end" },
      words.fraction_of_sampled),
    dot,
  );
  return (step) => {
    bars.forEach(({ bar, name, old }, index) => {
      const probability = path.probabilities[step][index];
      put(bar, { y: one.Y(probability), height: one.Y(0) - one.Y(probability) });
      put(name, { y: one.Y(Math.max(probability, old)) - one.size * 0.5 });
      write(name, index < 2 ? say(words, "sampled_mark", {
        ratio: fixed(path.ratios[step][index], 3) }) : words.unseen_mark);
    });
    const [x, y] = at(step, path.kl[step]);
    put(dot, { cx: x, cy: y });
  };
}
