// What widgets about the ends of episodes share: the kind of each step, lamps, the way back.
const ENDS = ["continue", "terminated", "truncated"];

// GAE with two masks and next values of one's own; `carried` is γλ where the sum goes on.
function backwards({ rewards, values, next, counted, goes, gamma, gae_lambda: weight }) {
  const td_errors = rewards.map((reward, t) =>
    reward + gamma * (counted[t] ? next[t] : 0) - values[t]);
  const advantages = Array(rewards.length);
  let following = 0;
  for (let t = rewards.length - 1; t >= 0; t -= 1) {
    following = td_errors[t] + (goes[t] ? gamma * weight : 0) * following;
    advantages[t] = following;
  }
  return { td_errors, advantages };
}

// One mark for each step, in one row: a press or the up and down keys change its kind.
function endMarks(shell, svg, plot, { y, width }) {
  const { store, words } = shell;
  const { size, X } = plot;
  const set = (t, number) => {
    const ends = [...store.get("ends")];
    ends[t] = ENDS[((number % 3) + 3) % 3];
    store.set({ ends });
  };
  const items = store.get("ends").map((_, t) => {
    const box = { x: X(t) - width / 2, y: y - size * 0.9, width, height: size * 1.8, rx: 4 };
    const text = label({ x: X(t), y: y + size * 0.36, "text-anchor": "middle",
      "aria-hidden": "true" }, "");
    const frame = draw("rect", { ...box, class: "ppo-frame" });
    const node = draw("g", { class: "ppo-handle", role: "slider", tabindex: -1,
      "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 2,
      "aria-label": say(words, "end_of", { row: t }), style: "cursor: pointer" },
    frame, draw("rect", { ...box, class: "ppo-ring" }), draw("rect", { ...box, class: "ppo-hit" }),
    text);
    const get = () => ENDS.indexOf(store.get("ends")[t]);
    const cycle = () => set(t, get() + 1);
    node.addEventListener("pointerdown", cycle);
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      cycle();
      event.preventDefault();
    });
    const update = (end) => {
      put(node, { "aria-valuenow": ENDS.indexOf(end), "aria-valuetext": words[`end_${end}`] });
      write(text, words[`end_${end}`]);
      text.style.fontWeight = end === "continue" ? 400 : 700;
      put(frame, { "stroke-width": end === "continue" ? 1 : 2.5,
        "stroke-dasharray": end === "truncated" ? "5 4" : "none" });
    };
    // a pointer gives no number: the press above is enough
    const move = (number) => (Number.isNaN(number) ? null : set(t, Math.round(number)));
    return { node, nudge: 1, at: () => t, get, move, update };
  });
  handleGroup(shell, svg, { ...plot, atY: () => NaN }, { name: words.ends_group, items, along: "y" });
  return (ends) => items.forEach((item, t) => item.update(ends[t]));
}

// A lamp: full where something is lit, struck through where it is cut.
function lamp(x, y, size) {
  const disc = draw("circle", { cx: x, cy: y, r: size * 0.48, class: "ppo-mark" });
  const strike = draw("path", { class: "ppo-mark", "data-kind": "silent",
    d: `M${x - size * 0.4},${y + size * 0.4}L${x + size * 0.4},${y - size * 0.4}` });
  const node = draw("g", {}, disc, strike);
  return { node, set(lit) {
    put(node, { visibility: lit === null ? "hidden" : "visible" });
    disc.style.fill = lit ? "var(--ppo-new)" : "var(--ppo-paper)";
    strike.style.visibility = lit ? "hidden" : "inherit";
  } };
}

// An arrow from the right to the left, and the mark of a cut where nothing flows.
function flow(from, to, y, size) {
  const shaft = draw("path", { class: "ppo-new",
    d: `M${from},${y}H${to}M${to + size * 0.5},${y - size * 0.35}L${to},${y}l${size * 0.5},${size * 0.35}` });
  const middle = (from + to) / 2;
  const cut = draw("path", { class: "ppo-mark", "data-kind": "silent",
    d: `M${middle},${y - size * 0.7}V${y + size * 0.7}` });
  const node = draw("g", {}, shaft, cut);
  return { node, shaft, set(state) { // "flows", "cut" or "" for not yet
    shaft.style.visibility = state === "flows" ? "visible" : "hidden";
    cut.style.visibility = state === "cut" ? "visible" : "hidden";
  } };
}
