// The maps of RunScrubber: policy and critic over angle and velocity of the pole, for both runs.
const MAPS = ["policy", "values"];
const WRITTEN_AT = [1, 5, 9]; // columns whose number is written, in the middle row

function mapPanel(shell, svg) {
  const { store, words } = shell;
  const { angles, velocities, runs } = store.get("study");
  const [columns, rows] = [angles.length, velocities.length];
  const size = store.get("large") ? 20 : 15;
  const left = size * 3.6;
  const [wide, gap] = [(TALL.width - left - size * 2) / 2, size * 1.4];
  const high = (TALL.height - size * 7.8) / 2;
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${TALL.width} ${TALL.height}` });
  svg.replaceChildren(back);
  const leftOf = (run) => left + run * (wide + gap);
  const topOf = (map) => size * 3 + map * (high + size * 1.9);
  const tick = (value) => String(value).replace("-", "−");
  const end = topOf(1) + high;
  const heads = [0, 1].map((run) => label({ class: "ppo-heading", x: leftOf(run), y: size * 1.1 },
    ""));
  back.append(...heads);
  back.append(label({ x: (left + TALL.width) / 2, y: end + size * 2.3, "text-anchor": "middle" },
    words.angle_axis));
  const middle = (topOf(0) + end) / 2;
  back.append(label({ x: size, y: middle, "text-anchor": "middle",
    transform: `rotate(-90 ${size} ${middle})` }, words.velocity_axis));

  const maps = MAPS.flatMap((map, below) => [0, 1].map((run) => {
    const [x, y] = [leftOf(run), topOf(below)];
    const [w, h] = [wide / columns, high / rows];
    const place = (at) => [x + (at % columns) * w, y + (rows - 1 - Math.floor(at / columns)) * h];
    const cells = Array.from({ length: rows * columns }, (_, at) => {
      const [cx, cy] = place(at);
      return draw("rect", { x: fixed(cx, 2), y: fixed(cy, 2), width: fixed(w, 2),
        height: fixed(h, 2), fill: "var(--ppo-new)", "shape-rendering": "crispEdges" });
    });
    const half = draw("path", { class: "ppo-ink", "stroke-width": 2.5 });
    const numbers = WRITTEN_AT.map((column) => label({ class: "ppo-halo", "text-anchor": "middle",
      x: fixed(x + (column + 0.5) * w, 2), y: fixed(y + high / 2 + size * 0.35, 2) }, ""));
    back.append(...cells, draw("rect", { class: "ppo-frame", x, y, width: wide, height: high }),
      half, ...numbers);
    if (run === 0) {
      back.append(label({ x, y: y - size * 0.45 }, words[`${map}_title`]));
      [0, rows - 1].forEach((at) => back.append(label({ x: x - size * 0.4,
        y: y + (rows - at - 0.5) * h + size * 0.35, "text-anchor": "end" },
      tick(velocities[at]))));
    }
    if (below) {
      [0, (columns - 1) / 2, columns - 1].forEach((at) => back.append(label({
        x: x + (at + 0.5) * w, y: end + size * 1.1, "text-anchor": "middle" }, tick(angles[at]))));
    }
    return { map, run, cells, half, numbers, place, w, h };
  }));

  // Along the edges between cells that push to different sides.
  const border = (chances, { place, w, h }) => chances.map((chance, at) => {
    const [x, y] = place(at).map((pixel) => Number(fixed(pixel, 2)));
    const differs = (other) => (chance >= 50) !== (chances[other] >= 50);
    const upright = at % columns < columns - 1 && differs(at + 1);
    const flat = at + columns < chances.length && differs(at + columns);
    return (upright ? `M${x + w},${y}v${h}` : "") + (flat ? `M${x},${y}h${w}` : "");
  }).join("");

  return {
    update({ other, iteration }) {
      const names = ["seed_1", other];
      names.forEach((name, run) => write(heads[run], words[`run_${name}`]));
      for (const each of maps) {
        const series = runs[names[each.run]][each.map];
        const found = series[iteration - 1].split(" ").map(Number);
        found.forEach((number, at) => put(each.cells[at],
          { "fill-opacity": clamp(number, 0, 100) / 100 }));
        WRITTEN_AT.forEach((column, at) => write(each.numbers[at],
          written(found[((rows - 1) / 2) * columns + column], 0)));
        if (each.map === "policy") put(each.half, { d: border(found, each) });
      }
    },
  };
}
