// The panels of LifeOfATransition: the card of a sample, and a picture for each stage.
const STAGES = ["collect", "score", "squeeze", "renew"];
const LIMIT = 0.2095; // radians at which an episode of CartPole ends
const upTo = (count) => Array.from({ length: count }, (_, index) => index);
const show = (node, shown) => put(node, { visibility: shown ? "visible" : "hidden" });

// What is written down of the sample, stage by stage; above it the cart, as it stood.
function cardPanel(shell, svg) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const { width, height } = PANEL;
  put(svg, { viewBox: `0 0 ${width} ${height}` });
  const ground = size * 1.6 + 92;
  const heading = label({ class: "ppo-heading", x: size, y: size * 1.2 }, "");
  const angle = label({ x: width - size, y: ground - size * 2, "text-anchor": "end" }, "");
  const cart = draw("rect", { width: 64, height: 22, y: ground - 22, class: "ppo-bar-open" });
  const limits = draw("path", { class: "ppo-mark-line" });
  const pole = draw("path", { class: "ppo-ink", style: "stroke-width: 5; stroke-linecap: round" });
  const arrow = draw("path", { class: "ppo-new" });
  const gone = draw("path", { class: "ppo-ink", style: "stroke-width: 3",
    d: `M${width / 2 - 130},${size * 1.8}L${width / 2 + 130},${ground + 4}M${width / 2 + 130},${
      size * 1.8}L${width / 2 - 130},${ground + 4}` });
  const step = (height - ground - size * 0.8) / 4;
  const rows = STAGES.map((stage, index) => {
    const top = ground + size * 0.6 + index * step;
    const [y, band] = [top + step / 2 + size * 0.36, draw("rect", { class: "ppo-band", x: 2, y: top + 2,
      width: width - 4, height: step - 4, rx: 4 })];
    const name = label({ x: size * 0.6, y, class: "ppo-heading" }, words[stage]);
    const fact = label({ x: size * 6, y }, "");
    return { stage, band, name, fact };
  });
  const layer = draw("g", { "font-size": size, "aria-hidden": "true" }, heading, angle,
    draw("path", { class: "ppo-frame", d: `M20,${ground}H${width - 20}` }), limits, cart, pole, arrow,
    gone, ...rows.flatMap(({ band, name, fact }) => [band, name, fact]));
  svg.replaceChildren(layer);

  return ({ stage, revealed }, record, facts) => {
    write(heading, say(words, "card_title", facts));
    write(angle, say(words, "angle", facts));
    const middle = width / 2 + 100 * record.observation[0];
    const tip = (turn) => [middle + 60 * Math.sin(turn), ground - 22 - 60 * Math.cos(turn)];
    const side = record.action === 1 ? 1 : -1;
    put(cart, { x: fixed(middle - 32, 2) });
    put(pole, { d: line([[middle, ground - 22], tip(record.observation[2])]) });
    put(limits, { d: [-LIMIT, LIMIT].map((turn) => line([[middle, ground - 22], tip(turn)])).join("") });
    const [from, to] = [middle + side * 40, middle + side * 88];
    put(arrow, { d: `M${fixed(from, 2)},${ground - 11}H${fixed(to, 2)}m${-side * 10},-7l${side * 10},7l${
      -side * 10},7` });
    show(gone, stage === "renew" && revealed);
    const reached = STAGES.indexOf(stage);
    rows.forEach((each, index) => {
      show(each.band, index === reached);
      const told = index <= reached && (revealed || index < 2);
      write(each.fact, told ? say(words, `row_${each.stage}`, facts) : words.later);
    });
  };
}

// Two actions: their probabilities under π_old and, in the end, under the new policy.
function actionPanel(shell, svg) {
  const { store, words } = shell;
  const stage = store.get("stage");
  const plot = axes(svg, { x: [-0.7, 1.7], y: [0, 1], xTicks: [0, 1], yTicks: [0, 0.5, 1],
    xGrid: false, xTick: (index) => [words.left, words.right][index], xLabel: words.action_axis,
    yLabel: words.probability_axis, title: words[`title_${stage}`], large: store.get("large") });
  const { X, Y, size } = plot;
  const old = upTo(2).map(() => draw("rect", { class: "ppo-bar-old" }));
  const now = upTo(2).map(() => draw("rect"));
  const texts = upTo(2).map((index) => label({ x: X(index), "text-anchor": "middle" }, ""));
  plot.layer().append(...now, ...old, ...texts);
  return ({ revealed }, record, facts, numbers) => {
    const both = (chosen) => upTo(2).map((index) => (index === record.action ? chosen : 1 - chosen));
    const [before, after] = [both(numbers.before), both(numbers.after)];
    const hidden = stage === "renew" && !revealed;
    upTo(2).forEach((index) => {
      const to = stage === "renew" ? after[index] : before[index];
      setBar(plot, old[index], { at: index, width: 0.7, to: before[index] });
      setBar(plot, now[index], { at: index, width: 0.45, to: hidden ? 0 : to });
      put(now[index], { class: index === record.action ? "ppo-bar-new" : "ppo-bar-open" });
      put(texts[index], { y: fixed(Y(Math.max(to, before[index])) - size * 0.4, 2) });
      write(texts[index], hidden ? words.hidden : stage === "renew"
        ? `${written(before[index], 2)} → ${written(to, 2)}` : written(to, 2));
    });
  };
}

// TD errors from this step on, and what each adds to the advantage.
function errorPanel(shell, svg) {
  const { store, words } = shell;
  const large = store.get("large");
  const plot = axes(svg, { x: [-0.7, 15.7], y: [-5, 5], xTicks: [0, 3, 6, 9, 12, 15],
    yTicks: [-4, -2, 0, 2, 4], tick: (value) => String(value).replace("-", "−"), xGrid: false,
    xLabel: words.later_axis, yLabel: words.error_axis, title: "", large });
  const { Y, box, size } = plot;
  const heading = label({ class: "ppo-heading", x: large ? size : box.left, y: size * 1.2 }, "");
  const bars = upTo(16).map(() => [draw("rect", { class: "ppo-bar-old" }),
    draw("rect", { class: "ppo-bar-new" })]);
  plot.layer().append(heading, draw("path", { class: "ppo-frame",
    d: `M${box.left},${Y(0)}H${box.right}` }), ...bars.flat());
  return (_, record, facts, { td_errors, weighted }) => {
    write(heading, say(words, "title_score", facts));
    bars.forEach(([whole, part], later) => {
      setBar(plot, whole, { at: later, width: 0.8, to: td_errors[later] ?? 0 });
      setBar(plot, part, { at: later, width: 0.5, to: weighted[later] ?? 0 });
      show(whole, later < td_errors.length);
    });
  };
}

// Its ratio each time it is used; a cross where the clip took its gradient.
function ratioPanel(shell, svg) {
  const { store, words } = shell;
  const epsilon = store.get("recording").clip_epsilon;
  const plot = axes(svg, { x: [0.5, 8.5], y: [0.6, 1.6], xTicks: upTo(8).map((index) => index + 1),
    yTicks: [0.6, 0.8, 1, 1.2, 1.4, 1.6], xTick: String, xLabel: words.epoch_axis,
    yLabel: words.ratio_axis, title: words.title_squeeze, large: store.get("large") });
  const { X, Y, box, size } = plot;
  const path = draw("path", { class: "ppo-new" });
  const marks = upTo(8).map(() => draw("path", { class: "ppo-mark" }));
  const edges = [1 - epsilon, 1 + epsilon].map((edge) => draw("path", { class: "ppo-ink",
    d: `M${box.left},${Y(edge)}H${box.right}` }));
  plot.layer().append(draw("path", { class: "ppo-edge", d: `M${box.left},${Y(1)}H${box.right}` }),
    ...edges, path, ...marks);
  return ({ epoch, revealed }, record, facts, { ratios, pushes }) => {
    show(path, revealed);
    put(path, { d: line(ratios.slice(0, epoch).map((ratio, index) => [X(index + 1), Y(ratio)])) });
    marks.forEach((mark, index) => {
      const kind = pushes[index] ? "push" : "silent";
      show(mark, revealed && index < epoch);
      put(mark, { d: MARKS[kind], "data-kind": kind, transform: `translate(${fixed(X(index + 1), 2)},${
        fixed(Y(ratios[index]), 2)}) scale(${(size / 15) * (index === epoch - 1 ? 1.5 : 1)})` });
    });
  };
}

const PICTURES = { collect: actionPanel, score: errorPanel, squeeze: ratioPanel, renew: actionPanel };
