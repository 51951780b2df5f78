// PartSwap's two panels: scores with advantages, and what one token is pushed.

const PLACES = [0, 1, 2, 3];
const ACROSS = [-0.6, 3.6];
const snap = (score) => Number(clamp(Math.round(score * 10) / 10, 0, 1).toFixed(1));
const tick = (value) => String(value).replace("-", "−");

// The scores, which a hand drags, and the advantages that come of them.
function scorePanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: ACROSS, y: [-2, 2], xTicks: PLACES, yTicks: [-2, -1, 0, 1, 2],
    xTick: (at) => words[`answer_${at}`], yTick: tick, xLabel: words.answers_axis, yLabel: words.scores_axis,
    title: words.scores_title, large: store.get("large"), xGrid: false });
  const { X, Y, box, size } = plot;
  const columns = PLACES.map(() => [draw("rect", { class: "ppo-bar-old" }),
    draw("rect", { class: "ppo-bar-new" })]);
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    ...columns.flat());
  const values = PLACES.map((at) => label({ class: "ppo-halo", "text-anchor": "middle",
    x: fixed(X(at), 2), y: fixed(box.bottom - size * 0.4, 2) }));
  plot.layer().append(...values); // the number stands even where a bar leaves the panel
  const items = PLACES.map((at) => {
    const { node, set } = barHandle(plot, { min: 0, max: 1, at, width: 0.8 });
    return {
      node, nudge: 0.1, at: () => at, get: () => store.get("scores")[at],
      move(score) {
        const scores = [...store.get("scores")];
        scores[at] = snap(score);
        store.set({ scores });
      },
      update: (score) => set({ value: score, name: say(words, "score", { number: at + 1 }),
        text: say(words, "score_value", { score: written(score, 1) }) }),
    };
  });
  handleGroup(shell, svg, plot, { name: words.group, items, along: "y" });
  return ({ scores, revealed }, { advantages }) => PLACES.forEach((at) => {
    const [score, advantage] = columns[at];
    setBar(plot, score, { at, width: 0.8, to: scores[at] });
    setBar(plot, advantage, { at, width: 0.5, to: revealed ? clamp(advantages[at], -2, 2) : 0 });
    write(values[at], revealed ? written(advantages[at], 2) : "?");
    items[at].update(scores[at]);
  });
}

// What one token of each answer is pushed, the largest as 1.
function pushPanel(shell, svg) {
  const { store, words } = shell;
  const plot = axes(svg, { x: ACROSS, y: [-1.1, 1.1], xTicks: PLACES, yTicks: [-1, 0, 1],
    xTick: (at) => words[`answer_${at}`], yTick: tick, xLabel: words.answers_axis, yLabel: words.pushes_axis,
    title: words.pushes_title, large: store.get("large"), xGrid: false });
  const { X, Y, box, size } = plot;
  const bars = PLACES.map(() => draw("rect", { class: "ppo-bar-new" }));
  const values = PLACES.map((at) => label({ class: "ppo-halo", "text-anchor": "middle",
    x: fixed(X(at), 2) }));
  plot.layer().append(draw("path", { class: "ppo-frame", d: `M${box.left},${Y(0)}H${box.right}` }),
    ...bars, ...values);
  return ({ revealed }, { pushes }) => {
    const largest = Math.max(...pushes.map(Math.abs)) || 1;
    PLACES.forEach((at) => {
      setBar(plot, bars[at], { at, width: 0.5, to: revealed ? pushes[at] / largest : 0 });
      const y = !revealed || pushes[at] < 0 ? Y(0) - size * 0.4 : Y(0) + size * 1.1;
      put(values[at], { y: fixed(y, 2) });
      write(values[at], revealed ? written(pushes[at], 4) : "?");
    });
  };
}
