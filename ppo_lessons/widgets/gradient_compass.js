// The compass of GradientAgreement.
const STAR = "M0,-10L2.6,-3.2L9.5,-3.1L4.1,1.3L5.9,8.1L0,4.2L-5.9,8.1L-4.1,1.3L-9.5,-3.1L-2.6,-3.2Z";

// Directions only, on a circle: batch 2 ends further in, so that both are seen when they agree.
function compassPanel(shell, svg) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const R = PANEL.height / 2 - size * 2.6;
  const [cx, cy] = [R + size * 2.2, PANEL.height / 2 + size * 0.7];
  put(svg, { viewBox: `0 0 ${PANEL.width} ${PANEL.height}` });
  const at = (angle, radius) => {
    const turn = ((angle / 10) * Math.PI) / 180;
    return [cx + radius * Math.cos(turn), cy - radius * Math.sin(turn)];
  };
  const heading = label({ class: "ppo-heading", x: size, y: size * 1.2 }, "");
  const back = draw("g", { "font-size": size, "aria-hidden": "true" }, heading,
    draw("path", { class: "ppo-grid", d: `M${cx - R},${cy}H${cx + R}M${cx},${cy - R}V${cy + R}` }),
    draw("circle", { class: "ppo-frame", cx, cy, r: R }),
    label({ x: cx + R + size * 1.6, y: cy + size * 0.35 }, `→ ${words.valley}`),
    label({ x: cx, y: cy - R - size * 0.9, "text-anchor": "middle" }, `↑ ${words.hill}`));
  const rim = draw("g");
  const exact = draw("path", { class: "ppo-unclipped" });
  const star = draw("path", { d: STAR, class: "ppo-mark", fill: "currentColor" });
  const arrows = [1, 2].map((number) => {
    const shaft = draw("path", { class: "ppo-new", "stroke-dasharray": number === 2 ? "8 5" : "none" });
    const disc = draw("circle", { r: size * 0.75, stroke: "var(--ppo-new)", "stroke-width": 2.5,
      fill: number === 1 ? "var(--ppo-new)" : "var(--ppo-paper)" });
    const digit = label({ "text-anchor": "middle", y: size * 0.36, "font-weight": 700 },
      String(number));
    if (number === 1) digit.style.fill = "var(--ppo-paper)";
    return { shaft, head: draw("g", {}, disc, digit), radius: number === 1 ? R : R * 0.72 };
  });
  const zeros = [1, 2].map((number) => label({ x: cx + R + size * 1.6,
    y: cy + size * (1.2 + 1.4 * number) }, say(words, "nothing", { number })));
  back.append(rim, exact, star, ...arrows.flatMap(({ shaft, head }) => [shaft, head]), ...zeros);
  svg.replaceChildren(back);

  return (angles, truth, pair, number) => {
    write(heading, say(words, "compass", { number }));
    const spread = angles.filter((angle) => angle !== null);
    rim.replaceChildren(draw("path", { fill: "none", stroke: "var(--ppo-line)", "stroke-width": 1.6,
      d: spread.map((angle) => line([at(angle, R + 4), at(angle, R + 12)])).join("") }));
    put(exact, { d: line([[cx, cy], at(truth, R)]) });
    put(star, { transform: `translate(${at(truth, R + 8).map((v) => fixed(v, 2))})` });
    arrows.forEach(({ shaft, head, radius }, index) => {
      const angle = angles[2 * pair + index];
      const [x, y] = angle === null ? [cx, cy] : at(angle, radius);
      put(shaft, { d: line([[cx, cy], [x, y]]) });
      put(head, { transform: `translate(${fixed(x, 2)},${fixed(y, 2)})` });
      put(zeros[index], { visibility: angle === null ? "visible" : "hidden" });
    });
  };
}
