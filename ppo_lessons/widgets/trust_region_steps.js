// Panels of TrustRegion. Shapes carry the meaning: a circle is the plain step, a triangle the natural
// one, a square the penalty, a cross the old policy.
const STEP_MARKS = {
  plain: "M-7,0a7,7 0 1,0 14,0a7,7 0 1,0 -14,0Z",
  natural: "M0,-9L8,6H-8Z",
  penalty: "M-6.5,-6.5H6.5V6.5H-6.5Z",
};
const STEP_FILLS = { plain: "var(--ppo-paper)", natural: "var(--ppo-new)", penalty: "var(--ppo-ink)" };
const STEP_DASHES = { plain: "7 5", natural: "none", penalty: "2 4" };
const OLD_MARK = "M-8,0H8M0,-8V8";
const LEVEL = { stroke: "var(--ppo-line)", "stroke-opacity": 0.5, "stroke-width": 1.2 };
const FARTHEST = 0.25; // nats: where the right panel ends
const HIGHEST = 0.6;

function stepMark(name) {
  return draw("path", { class: "ppo-mark", d: STEP_MARKS[name], fill: STEP_FILLS[name] });
}

// A triangle of all policies: a bottom left, b bottom right, c on top.
function simplex(svg, { large, title, words }) {
  const size = large ? 20 : 15;
  const [top, bottom] = [size * 3.4, PANEL.height - size * 1.9];
  const height = bottom - top;
  const side = (2 * height) / Math.sqrt(3);
  const left = (PANEL.width - side) / 2;
  const at = ([, b, c]) => [left + side * (b + c / 2), bottom - height * c];
  const back = draw("g", { "font-size": size, "aria-hidden": "true" });
  put(svg, { viewBox: `0 0 ${PANEL.width} ${PANEL.height}`, class: "" });
  svg.replaceChildren(back);
  const corners = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  back.append(
    label({ class: "ppo-heading", x: size, y: size * 1.2 }, title),
    draw("path", { class: "ppo-frame", d: `${line(corners.map(at))}Z` }),
    ...corners.map((corner, a) => label({ "text-anchor": "middle", x: at(corner)[0],
      y: at(corner)[1] + (a === 2 ? -size * 0.5 : size * 1.4) }, say(words, "only",
      { action: "abc"[a] }))),
  );
  const layer = (attributes = { "aria-hidden": "true" }) => {
    const node = draw("g", { "font-size": size, ...attributes });
    svg.append(node);
    return node;
  };
  const policyAt = ({ x, y }) => {
    const c = (bottom - y) / height;
    return [(x - left) / side - c / 2, c]; // b and c
  };
  return { at, layer, size, policyAt };
}

const full = ([a, b]) => [a, b, 1 - a - b];

function moveTo(node, [x, y], scale = 1) {
  put(node, { transform: `translate(${fixed(x, 2)},${fixed(y, 2)}) scale(${fixed(scale, 3)})` });
}

const WHOLE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

// Where a linear function of the policy has one value: two ends on the sides, or none.
function levelLine(value) {
  const ends = [];
  WHOLE.forEach((here, index) => {
    const next = WHOLE[(index + 1) % 3];
    const [one, two] = [value(here), value(next)];
    if (one * two < 0) ends.push(here.map((p, a) => p + (one / (one - two)) * (next[a] - p)));
  });
  return ends;
}

function stepMap(shell, svg) {
  const { store, words } = shell;
  const { grids } = store.pick("grids");
  const { at, layer, size } = simplex(svg, { large: store.get("large"), title: words.map_title,
    words });
  const [ball, levels] = [draw("path", { class: "ppo-band", stroke: "var(--ppo-ink)",
    "stroke-width": 1.5 }), draw("path", { ...LEVEL, fill: "none" })];
  const paths = STEPS.map((name) => draw("path", { fill: "none", stroke: "var(--ppo-new)",
    "stroke-width": 2, "stroke-dasharray": STEP_DASHES[name] }));
  const marks = STEPS.map(stepMark);
  const old = draw("path", { d: OLD_MARK, stroke: "var(--ppo-ink)", "stroke-width": 3 });
  layer().append(ball, levels, ...paths, old, ...[...marks].reverse());

  return ({ situation, max_kl, learning_rate, beta, revealed }, found) => {
    const { policy_old: start, advantages, balls, penalty } = grids.by[situation];
    put(ball, { d: `${line(balls[grids.radii.indexOf(max_kl)].map((p) => at(full(p))))}Z` });
    const value = (policy) => gainOf(start, advantages, policy);
    const gains = Array.from({ length: 13 }, (_, index) => (index - 6) * 0.25);
    put(levels, { d: gains.map((gain) => levelLine((policy) => value(policy) - gain))
      .filter((ends) => ends.length === 2).map((ends) => line(ends.map(at))).join("") });
    const parts = Array.from({ length: 25 }, (_, index) => index / 24);
    const ways = {
      plain: parts.map((part) => plainStep(start, advantages, part * learning_rate)),
      natural: parts.map((part) => naturalStep(start, advantages, part ** 2 * max_kl)),
      penalty: [start, ...penalty.slice(grids.prices.indexOf(beta)).reverse()],
    };
    STEPS.forEach((name, index) => {
      const seen = name !== "plain" || revealed ? "visible" : "hidden";
      put(paths[index], { d: line(ways[name].map(at)), visibility: seen });
      put(marks[index], { visibility: seen });
      moveTo(marks[index], at(found[name]), size / 20);
    });
    moveTo(old, at(start), size / 20);
  };
}

function gainPanel(shell, svg) {
  const { store, words } = shell;
  const { grids } = store.pick("grids");
  const plot = axes(svg, { x: [0, FARTHEST], y: [0, HIGHEST], xTicks: [0, 0.05, 0.1, 0.15, 0.2,
    0.25], yTicks: [0, 0.2, 0.4, 0.6], xLabel: words.kl_axis, yLabel: words.gain_axis,
  title: words.gain_title, large: store.get("large") });
  const { X, Y, box, size } = plot;
  const inside = draw("rect", { class: "ppo-band", x: box.left, y: box.top,
    height: box.bottom - box.top });
  const edge = draw("path", { stroke: "var(--ppo-ink)", "stroke-width": 1.5 });
  const radius = label({ class: "ppo-halo", y: box.top + size }, "δ");
  const front = draw("path", { class: "ppo-unclipped" });
  const guess = draw("path", { stroke: "var(--ppo-ink)", "stroke-width": 2,
    "stroke-dasharray": "3 4" });
  const guessName = label({ class: "ppo-halo", y: box.bottom - size * 0.6 }, words.your_guess);
  const marks = STEPS.map(stepMark);
  const beyond = label({ class: "ppo-halo", "text-anchor": "end", x: box.right - size * 0.9 }, "");
  plot.layer().append(inside, front, edge, radius, guess, guessName, beyond,
    ...[...marks].reverse());

  return ({ situation, max_kl, guess: said, revealed }, found) => {
    put(inside, { width: X(max_kl) - box.left });
    put(edge, { d: `M${X(max_kl)},${box.top}V${box.bottom}` });
    put(radius, { x: X(max_kl) + size * 0.3 });
    put(front, { d: line(withinPanel([[0, 0], ...grids.by[situation].front]).map(([kl, gain]) =>
      [X(kl), Y(gain)])) });
    STEPS.forEach((name, index) => {
      const x = Math.min(found[`kl_${name}`], FARTHEST);
      moveTo(marks[index], [X(x), Y(clamp(found[`gain_${name}`], 0, HIGHEST))], size / 15);
      put(marks[index], { visibility: name !== "plain" || revealed ? "visible" : "hidden" });
    });
    const far = STEPS.filter((name) => found[`kl_${name}`] > FARTHEST
      && (name !== "plain" || revealed));
    write(beyond, far.map((name) => `${words[`${name}_name`]}: KL ${short(found[`kl_${name}`])} →`)
      .join(" "));
    put(beyond, { y: Y(0.06) });
    const shown = revealed && said !== null ? "visible" : "hidden";
    const place = X(Math.min((said ?? 0) * max_kl, FARTHEST));
    const left = place < X(FARTHEST * 0.7);
    put(guess, { visibility: shown, d: `M${place},${box.top}V${box.bottom}` });
    put(guessName, { visibility: shown, x: place + (left ? 1 : -1) * size * 0.4,
      "text-anchor": left ? "start" : "end" });
  };
}

// The part of the curve before it leaves the panel; its last point lies on the border.
function withinPanel(points) {
  const end = points.findIndex(([kl, gain]) => kl > FARTHEST || gain > HIGHEST);
  if (end < 0) return points;
  const [[kl, gain], [kl2, gain2]] = [points[end - 1], points[end]];
  const part = Math.min((FARTHEST - kl) / (kl2 - kl), (HIGHEST - gain) / (gain2 - gain));
  return [...points.slice(0, end), [kl + part * (kl2 - kl), gain + part * (gain2 - gain)]];
}

function keyOf(entries) {
  const node = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  for (const [text, ...pieces] of entries) {
    node.append(make("span", { class: "ppo-key" }, draw("svg", { class: "ppo-long",
      viewBox: "0 0 28 18" }, ...pieces), text));
  }
  return node;
}

const inKey = (node) => put(node, { transform: "translate(14,9) scale(.85)" });
const oldKey = () => inKey(draw("path", { d: OLD_MARK, stroke: "currentColor", "stroke-width": 3 }));
const ballKey = () => draw("rect", { class: "ppo-band", x: 1, y: 2, width: 26, height: 14,
  stroke: "currentColor" });

function stepKeys(words) {
  return keyOf([
    [words.old_mark, oldKey()], [words.ball, ballKey()],
    ...STEPS.map((name) => [words[`${name}_name`], inKey(stepMark(name))]),
    [words.equal, draw("path", { ...LEVEL, d: "M2,14L26,4" })],
    [words.front, draw("path", { class: "ppo-unclipped", d: "M0,9H28" })],
  ]);
}
