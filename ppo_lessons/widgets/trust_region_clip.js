// The clip in TrustRegion's triangle: where an incentive has ended, and a policy to move about.

// The part of a convex outline where `inside` is at least 0.
function cut(outline, inside) {
  const kept = [];
  outline.forEach((here, index) => {
    const next = outline[(index + 1) % outline.length];
    const [one, two] = [inside(here), inside(next)];
    if (one >= 0) kept.push(here);
    if (one * two < 0) kept.push(here.map((value, a) => value + (one / (one - two))
      * (next[a] - value)));
  });
  return kept;
}

function clipMap(shell, svg) {
  const { store, words } = shell;
  const { grids } = store.pick("grids");
  const { at, layer, size, policyAt } = simplex(svg, { large: store.get("large"),
    title: words.map_title, words });
  const ball = draw("path", { class: "ppo-band", stroke: "var(--ppo-ink)", "stroke-width": 1.5 });
  const hatch = draw("path", { fill: "none", stroke: "var(--ppo-worse)", "stroke-width": 1.4 });
  const region = draw("path", { fill: "none", stroke: "var(--ppo-worse)", "stroke-width": 2.5 });
  const edges = [0, 1, 2].map((a) => ({ rule: draw("path", { stroke: "var(--ppo-worse)",
    "stroke-width": 2, "stroke-dasharray": "7 4" }), name: label({ class: "ppo-halo",
    "text-anchor": a === 0 ? "end" : "start" }, "") }));
  const old = draw("path", { d: OLD_MARK, stroke: "var(--ppo-ink)", "stroke-width": 3 });
  layer().append(ball, hatch, region, ...edges.flatMap(({ rule, name }) => [rule, name]), old);
  const handle = policyHandle(shell, svg, { layer, policyAt });

  return ({ situation, max_kl, moved }) => {
    const { policy_old: start, advantages, balls, sampled } = grids.by[situation];
    put(ball, { d: `${line(balls[grids.radii.indexOf(max_kl)].map((p) => at(full(p))))}Z` });
    let outline = WHOLE;
    edges.forEach(({ rule, name }, a) => {
      const [sign, limit] = advantages[a] > 0 ? [1, (1 + grids.clip_epsilon) * start[a]]
        : [-1, (1 - grids.clip_epsilon) * start[a]];
      const over = (policy) => sign * (policy[a] - limit);
      if (sampled[a]) outline = cut(outline, over);
      const ends = sampled[a] ? levelLine(over) : [];
      const shown = ends.length === 2 ? "visible" : "hidden";
      put(rule, { visibility: shown, d: shown === "visible" ? line(ends.map(at)) : "" });
      put(name, { visibility: shown });
      if (shown === "hidden") return;
      // on the side opposite to b for a, and to a for b and c: outside the triangle
      const end = at(ends.find((policy) => policy[a === 0 ? 1 : 0] < 1e-9) ?? ends[0]);
      put(name, { x: end[0] + (a === 0 ? -1 : 1) * size * 0.5, y: end[1] + size * 0.35 });
      write(name, `${"abc"[a]} ${sign > 0 ? ">" : "<"} ${fixed(limit, 3)}`);
    });
    const points = outline.map(at);
    put(region, { d: points.length > 2 ? `${line(points)}Z` : "" });
    put(hatch, { d: points.length > 2 ? hatching(points) : "" });
    moveTo(old, at(start), size / 15);
    handle(moved, at(moved));
  };
}

// Lines at 45 degrees across a convex outline.
function hatching(points) {
  const sums = points.map(([x, y]) => x + y);
  const lines = [];
  for (let level = Math.ceil(Math.min(...sums) / 12) * 12; level < Math.max(...sums); level += 12) {
    const ends = [];
    points.forEach(([x, y], index) => {
      const [u, v] = points[(index + 1) % points.length];
      const [one, two] = [x + y - level, u + v - level];
      if (one * two < 0) ends.push([x + (one / (one - two)) * (u - x), y + (one / (one - two))
        * (v - y)]);
    });
    if (ends.length === 2) lines.push(line(ends));
  }
  return lines.join("");
}

// A policy that is moved in two directions.
function policyHandle(shell, svg, { layer, policyAt }) {
  const { store, words } = shell;
  const group = layer({ role: "group", "aria-label": words.group });
  const mark = draw("path", { class: "ppo-mark", d: STEP_MARKS.plain, fill: "var(--ppo-new)" });
  const node = draw("g", { class: "ppo-handle", role: "slider", tabindex: 0, "aria-valuemin": 0,
    "aria-valuemax": 1, "aria-label": words.moved, style: "cursor: move" },
  draw("circle", { class: "ppo-hit", r: 16 }), draw("circle", { class: "ppo-ring", r: 12 }), mark);
  group.append(node);
  node.addEventListener("keydown", (event) => { // the listener goes with the node
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 0.1 : 0.01;
    const [b, c] = { ArrowRight: [by, 0], ArrowLeft: [-by, 0], ArrowUp: [-by / 2, by],
      ArrowDown: [by / 2, -by] }[event.key] ?? [0, 0];
    if (!b && !c) return;
    const moved = store.get("moved");
    // half a hundredth is rounded to the side of the larger of a and b
    const nudge = c && moved[0] > moved[1] ? Math.sign(c) * 1e-6 : 0;
    store.set({ moved: snapPolicy(moved[1] + b + nudge, moved[2] + c) });
    event.preventDefault();
  });
  let frame = null; // from the screen into the panel as it lay when the drag began
  const follow = (event) => store.set({ moved: snapPolicy(...policyAt(
    new DOMPoint(event.clientX, event.clientY).matrixTransform(frame))) });
  group.addEventListener("pointerdown", (event) => {
    frame = svg.getScreenCTM().inverse();
    group.setPointerCapture(event.pointerId);
    node.focus({ preventScroll: true });
    event.preventDefault();
  });
  group.addEventListener("pointermove", (event) => frame && follow(event));
  for (const type of ["pointerup", "pointercancel"]) {
    group.addEventListener(type, () => (frame = null));
  }
  return (moved, place) => {
    moveTo(node, place);
    const [a, b, c] = moved.map((each) => fixed(each, 2));
    put(node, { "aria-valuenow": moved[1], "aria-valuetext": say(words, "moved_text", { a, b, c }) });
  };
}

function ratioPanel(shell, svg) {
  const { store, words } = shell;
  const { grids } = store.pick("grids");
  const highest = 2.5;
  const plot = axes(svg, { x: [0, 3], y: [0, highest], xTicks: [0.5, 1.5, 2.5], xGrid: false,
    xTick: (value) => "abc"[Math.floor(value)], yTicks: [0, 0.8, 1, 1.2, 2], xLabel: "",
    yLabel: words.ratio_axis, title: words.ratio_title, large: store.get("large") });
  const { X, Y, box, size } = plot;
  const [low, high] = [1 - grids.clip_epsilon, 1 + grids.clip_epsilon];
  const bars = [0, 1, 2].map(() => draw("rect"));
  const names = [0, 1, 2].map((a) => label({ class: "ppo-halo", "text-anchor": "middle",
    x: X(a + 0.5) }, ""));
  const front = plot.layer();
  front.append(draw("rect", { class: "ppo-band", x: box.left, width: box.right - box.left, y: Y(high),
    height: Y(low) - Y(high) }), ...bars, draw("path", { class: "ppo-frame",
    d: `M${box.left},${Y(1)}H${box.right}` }), ...names);
  return (_, { ratios, ended }) => ratios.forEach((ratio, a) => {
    setBar(plot, bars[a], { at: a + 0.5, width: 0.5, to: Math.min(ratio, highest) });
    put(bars[a], { class: ended[a] === null ? "ppo-bar-old" : "ppo-bar-new" });
    put(names[a], { y: Y(Math.min(ratio, highest - 0.25)) - size * 0.5 });
    write(names[a], `${ratio > highest ? `↑ ${written(ratio, 1)}` : written(ratio, 2)}: ${words[ended[a] === null
      ? "bar_unseen" : ended[a] ? "bar_ended" : "bar_open"]}`);
  });
}

function clipKeys(words) {
  const worse = { fill: "none", stroke: "var(--ppo-worse)", "stroke-width": 2 };
  return keyOf([
    [words.old_mark, oldKey()], [words.ball, ballKey()],
    [words.moved, inKey(draw("path", { class: "ppo-mark", d: STEP_MARKS.plain,
      fill: "var(--ppo-new)" }))],
    [words.region, draw("path", { ...worse, d: "M2,2H26V16H2ZM6,16L20,2M14,16L26,4M2,10L10,2" })],
    [words.line, draw("path", { ...worse, "stroke-dasharray": "7 4", d: "M0,9H28" })],
  ]);
}
