// The curves of RunScrubber: four strips over the iterations, one cursor through all of them.
const TALL = { width: 520, height: 420 };
const FLOOR = -4; // log10 of the smallest KL that is drawn
const STRIPS = [
  { metric: "episode_return", y: [0, 500], ticks: [[0, "0"], [250, "250"], [500, "500"]],
    digits: 0 },
  { metric: "kl_k3", y: [FLOOR, 1], ticks: [[FLOOR, "10⁻⁴"], [Math.log10(0.05), "0.05"], [1, "10"]],
    digits: 4, scale: (kl) => Math.max(Math.log10(Math.max(kl, 1e-9)), FLOOR) },
  { metric: "fraction_outside", y: [0, 1], ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]], digits: 2 },
  { metric: "entropy", y: [0, 0.7], ticks: [[0, "0"], [0.35, "0.35"], [0.7, "0.7"]], digits: 2 },
];

function stripPanel(shell, svg, last) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const [left, right] = [size * 3.4, TALL.width - size * 0.8];
  const bottom = TALL.height - size * 2.6;
  const high = bottom / STRIPS.length;
  const X = (iteration) => left + ((iteration - 1) / (last - 1)) * (right - left);
  const atX = (x) => 1 + ((x - left) / (right - left)) * (last - 1);
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${TALL.width} ${TALL.height}` });
  svg.replaceChildren(back);
  for (const iteration of [1, 10, 20, 30, 40, last]) {
    back.append(label({ x: X(iteration), y: bottom + size * 1.1, "text-anchor": "middle" },
      String(iteration)));
  }
  back.append(label({ x: (left + right) / 2, y: TALL.height - size * 0.3, "text-anchor": "middle" },
    words.iteration));

  const strips = STRIPS.map((strip, index) => {
    const [top, low] = [index * high + size * 1.5, (index + 1) * high - size * 0.45];
    const { y, scale = (value) => value } = strip;
    const Y = (value) => low - ((scale(value) - y[0]) / (y[1] - y[0])) * (low - top);
    const tickY = (value) => low - ((value - y[0]) / (y[1] - y[0])) * (low - top);
    strip.ticks.forEach(([value, text], number) => {
      const dashes = text === "0.05" ? "4 3" : "none";
      back.append(draw("line", { class: text === "0.05" ? "ppo-frame" : "ppo-grid", x1: left,
        x2: right, y1: tickY(value), y2: tickY(value), "stroke-dasharray": dashes }));
      if (number === 1 && text !== "0.05") return; // the middle one is a line only
      back.append(label({ x: left - size * 0.4, y: tickY(value) + size * 0.35,
        "text-anchor": "end" }, text));
    });
    const values = label({ class: "ppo-heading", x: right, y: top - size * 0.45,
      "text-anchor": "end" }, "");
    const curves = [draw("path", { class: "ppo-unclipped" }), draw("path", { class: "ppo-new" })];
    const dots = [draw("circle", { class: "ppo-bar-open", r: size * 0.33 }),
      draw("circle", { class: "ppo-dot", r: size * 0.38 })];
    put(dots[0], { style: "stroke: var(--ppo-old)" });
    const drawn = draw("g", {}, ...curves, ...dots);
    back.append(draw("path", { class: "ppo-frame", d: `M${left},${top}V${low}H${right}` }),
      label({ class: "ppo-heading", x: left, y: top - size * 0.45 }, words[`strip_${strip.metric}`]),
      values, drawn);
    return { ...strip, Y, top, low, values, curves, dots, drawn };
  });
  const kl = strips[1];
  const hidden = label({ x: (left + right) / 2, y: (kl.top + kl.low) / 2 + size * 0.35,
    "text-anchor": "middle", class: "ppo-halo" }, words.kl_hidden);
  const marks = ["hidden", "silent"].map((kind) => draw("path", { class: "ppo-mark",
    d: MARKS[kind], "data-kind": kind }));
  const cursor = draw("path", { class: "ppo-mark-line" });
  back.append(cursor, ...marks, hidden);

  return {
    atX,
    run({ study, other }) {
      for (const { metric, Y, curves } of strips) {
        [study.runs.seed_1, study.runs[other]].forEach((run, index) => put(curves[index],
          { d: line(run[metric].map((value, at) => [X(at + 1), Y(value)])) }));
      }
    },
    update({ iteration, guess, revealed }, numbers) {
      put(cursor, { d: strips.map(({ top, low }) =>
        `M${fixed(X(iteration), 2)},${fixed(top, 2)}V${fixed(low, 2)}`).join("") });
      for (const { metric, digits, Y, values, dots } of strips) {
        const known = metric !== "kl_k3" || revealed;
        const [one, two] = numbers[metric].map((value) =>
          (known ? written(value, digits) : words.hidden));
        write(values, say(words, "marks", { one, two }));
        dots.forEach((dot, index) => put(dot, { cx: fixed(X(iteration), 2),
          cy: fixed(Y(numbers[metric][index]), 2) }));
      }
      put(kl.drawn, { visibility: revealed ? "visible" : "hidden" });
      put(hidden, { visibility: revealed ? "hidden" : "visible" });
      [numbers.first_jump, guess].forEach((at, index) => {
        const shown = revealed && at !== null && at > 0;
        put(marks[index], { visibility: shown ? "visible" : "hidden",
          transform: shown ? `translate(${fixed(X(at), 2)},${fixed(kl.Y(JUMP), 2)})` : "" });
      });
    },
  };
}
