// The six panels of WhichBug: healthy grey and dashed, the run blue, one cursor through all.
const BOARD = { width: 1060, columns: 3 };
const FLOOR = 1e-6; // smaller numbers are drawn as this one
const log = (value) => Math.log10(Math.max(value, FLOOR));
const PANELS = [
  { metric: "episode_return", y: [0, 500], ticks: [[0, "0"], [250, "250"], [500, "500"]],
    digits: 0 },
  { metric: "kl_k3", y: [-6, 1], ticks: [[-6, "10⁻⁶"], [-3, "10⁻³"], [0, "1"]], digits: 4,
    scale: log },
  { metric: "silent_share", y: [0, 1], ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]], digits: 2 },
  { metric: "entropy", y: [0, 0.7], ticks: [[0, "0"], [0.35, "0.35"], [0.7, "0.7"]], digits: 2 },
  { metric: "value_loss", y: [-3, 2], ticks: [[-3, "10⁻³"], [0, "1"], [2, "100"]], digits: 2,
    scale: log },
  { metric: "ev_lambda", y: [-0.5, 1], ticks: [[-0.5, "−0.5"], [0, "0"], [1, "1"]], digits: 2 },
];

function board(shell, svg, last) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const wide = BOARD.width / BOARD.columns;
  const tall = size * 14;
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
    const X = (iteration) => left + ((iteration - 1) / (last - 1)) * (right - left);
    for (const [value, text] of panel.ticks) {
      back.append(draw("line", { class: "ppo-grid", x1: left, x2: right, y1: place(value),
        y2: place(value) }), label({ x: left - size * 0.4, y: place(value) + size * 0.35,
        "text-anchor": "end" }, text));
    }
    for (const iteration of [1, 24, last]) {
      back.append(label({ x: X(iteration), y: bottom + size * 1.15,
        "text-anchor": iteration === last ? "end" : "middle" }, String(iteration)));
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
    update({ study, run, iteration, revealed }, numbers) {
      const betrayed = revealed ? study.bugs[run][1] : null;
      for (const panel of panels) {
        const pair = numbers[panel.metric];
        const [one, two] = pair.map((value) => written(value, panel.digits));
        write(panel.values, say(words, "marks", { one, two }));
        panel.dots.forEach((dot, index) => put(dot, { cx: fixed(panel.X(iteration), 2),
          cy: fixed(panel.Y(pair[index]), 2) }));
        put(panel.cursor, { d: `M${fixed(panel.X(iteration), 2)},${fixed(panel.top, 2)}`
          + `V${fixed(panel.bottom, 2)}` });
        const found = betrayed === panel.metric;
        put(panel.ring, { visibility: found ? "visible" : "hidden" });
        write(panel.here, found ? words.here : "");
      }
    },
  };
}
