// The six panels of WhichRun: healthy grey and dashed, the run blue, one cursor through all; the
// last panel stays closed until the reader has spoken.
const BOARD = { width: 1060, columns: 3 };
const SMALLEST = 0.01; // nats; smaller distances are drawn as this one
const log = (value) => Math.log10(Math.max(value, SMALLEST));
const PANELS = [
  { metric: "score", y: [-1, 3.5], ticks: [[-1, "−1"], [1, "1"], [3, "3"]], digits: 2 },
  { metric: "kl_reference", y: [-2, 2], ticks: [[-2, "0.01"], [0, "1"], [2, "100"]], digits: 2,
    scale: log },
  { metric: "length", y: [0, 10.5], ticks: [[0, "0"], [5, "5"], [10, "10"]], digits: 1 },
  { metric: "fraction_outside", y: [0, 1], ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]], digits: 2 },
  { metric: "ev_monte_carlo", y: [-0.5, 1], ticks: [[-0.5, "−0.5"], [0, "0"], [1, "1"]],
    digits: 2 },
  { metric: "success", y: [0, 1], ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]], digits: 2,
    closed: true },
];

function board(shell, svg, iterations) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const wide = BOARD.width / BOARD.columns;
  const tall = size * 14;
  const [first, last] = [iterations[0], iterations[iterations.length - 1]];
  put(svg, { viewBox: `0 0 ${BOARD.width} ${2 * tall + size}` });
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  svg.replaceChildren(back);
  const panels = PANELS.map((panel, index) => {
    const [x, y0] = [(index % BOARD.columns) * wide, Math.floor(index / BOARD.columns) * tall];
    const [left, right] = [x + size * 3.3, x + wide - size];
    const [top, bottom] = [y0 + size * 3.1, y0 + tall - size * 2.2];
    const { y, scale = (value) => value } = panel;
    const place = (value) => bottom - ((clamp(value, y[0], y[1]) - y[0]) / (y[1] - y[0]))
      * (bottom - top);
    const X = (look) => left + ((iterations[look - 1] - first) / (last - first)) * (right - left);
    for (const [value, text] of panel.ticks) {
      back.append(draw("line", { class: "ppo-grid", x1: left, x2: right, y1: place(value),
        y2: place(value) }), label({ x: left - size * 0.4, y: place(value) + size * 0.35,
        "text-anchor": "end" }, text));
    }
    for (const look of [1, 7, iterations.length]) {
      back.append(label({ x: X(look), y: bottom + size * 1.15,
        "text-anchor": look === iterations.length ? "end" : "middle" },
      String(iterations[look - 1])));
    }
    const ring = draw("rect", { class: "ppo-ring", x: x + 2, y: y0 + 3, width: wide - 6,
      height: tall - size * 0.8, rx: 6, style: "stroke: var(--ppo-worse); opacity: 1" });
    const here = label({ class: "ppo-heading", x: right, y: y0 + size * 2.7,
      "text-anchor": "end", style: "fill: var(--ppo-worse)" }, "");
    const values = label({ x: left, y: y0 + size * 2.7 }, "");
    const curves = [draw("path", { class: "ppo-unclipped" }), draw("path", { class: "ppo-new" })];
    const dots = [draw("circle", { class: "ppo-bar-open", r: size * 0.33 }),
      draw("circle", { class: "ppo-dot", r: size * 0.38 })];
    put(dots[0], { style: "stroke: var(--ppo-old)" });
    const cursor = draw("path", { class: "ppo-mark-line" });
    back.append(ring, draw("path", { class: "ppo-frame", d: `M${left},${top}V${bottom}H${right}` }),
      label({ class: "ppo-heading", x: left, y: y0 + size * 1.4 },
        words[`panel_${panel.metric}`]), here, values, cursor, ...curves, ...dots);
    return { ...panel, X, Y: (value) => place(scale(value)), top, bottom, ring, here, values,
      curves, dots, cursor };
  });

  return {
    run({ study, run }) {
      for (const { metric, X, Y, curves } of panels) {
        [study.runs.healthy, study.runs[run]].forEach((each, index) => put(curves[index],
          { d: line(each[metric].map((value, at) => [X(at + 1), Y(value)])) }));
      }
    },
    update({ study, run, look, revealed }, numbers) {
      const betrayed = revealed ? study.verdicts[run][1] : null;
      for (const panel of panels) {
        const open = revealed || !panel.closed;
        const pair = numbers[panel.metric];
        const [one, two] = pair.map((value) => written(value, panel.digits));
        write(panel.values, open ? say(words, "marks", { one, two }) : words.closed);
        panel.dots.forEach((dot, index) => put(dot, { cx: fixed(panel.X(look), 2),
          cy: fixed(panel.Y(pair[index]), 2), visibility: open ? "visible" : "hidden" }));
        for (const curve of panel.curves) put(curve, { visibility: open ? "visible" : "hidden" });
        put(panel.cursor, { d: `M${fixed(panel.X(look), 2)},${fixed(panel.top, 2)}`
          + `V${fixed(panel.bottom, 2)}` });
        const found = betrayed === panel.metric;
        put(panel.ring, { visibility: found ? "visible" : "hidden" });
        write(panel.here, found ? words.here : "");
      }
    },
  };
}
