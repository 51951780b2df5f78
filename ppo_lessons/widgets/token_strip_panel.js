// --- numbers: held to Python's in random states

const OFF = 1e-3;

export function compute({ way, token, recording }) {
  const { mask, log_probs, log_probs_old } = recording.ways[way];
  const ratios = log_probs.map((now, t) => Math.exp(now - log_probs_old[t]));
  const counted = ratios.filter((_, t) => mask[t]);
  const far = (ratio) => Math.abs(Math.log(ratio));
  return {
    ratios, actions: counted.length,
    off: counted.filter((ratio) => Math.abs(ratio - 1) > OFF).length,
    mean: counted.reduce((sum, each) => sum + each, 0) / Math.max(counted.length, 1),
    farthest: counted.reduce((worst, each) => (far(each) > far(worst) ? each : worst),
      counted[0] ?? 1),
    place: Math.min(token, ratios.length) - 1,
  };
}

// About three figures; `least` digits for what is small.
function short(number, least = 2) {
  const size = Math.abs(number);
  return written(number, size >= 99.95 ? 0 : size >= 9.995 ? 1
    : size > 0 && size < 0.0995 ? least : 2);
}

const fine = (number) => short(number, Math.abs(number) < 0.00995 ? 5 : 3);

// --- the strip: a column for each token, a line for each fact

const FACTS = ["token", "position", "action", "old", "new", "ratio"];
const WIDE = { width: 1060, names: 118 };
const LINE = 38;

function stripPanel(shell, svg) {
  const { store, words } = shell;
  const { prompt, response, rows, shares, reach } = store.get("recording");
  const size = store.get("large") ? 18 : 15;
  const extra = Object.keys(rows);
  const columns = prompt.length + response.length;
  const step = (WIDE.width - WIDE.names) / columns;
  const X = (column) => WIDE.names + step * (column + 0.5);
  const Y = (index) => 48 + LINE * index;
  const first = Y(FACTS.length + extra.length) - 6;
  const height = first + (shares ? 124 : 0);
  put(svg, { viewBox: `0 0 ${WIDE.width} ${height}` });
  const layer = draw("g", { "font-size": size, "aria-hidden": "true" });
  svg.replaceChildren(layer);

  const text = (x, index, style = "", anchor = "middle") => label({ x: fixed(x, 2),
    y: Y(index) + size * 0.36, class: style, "text-anchor": anchor }, "");
  const line = (index, from = prompt.length) => Array.from({ length: columns - from },
    (_, t) => text(X(from + t), index));
  const cell = (column, index, style) => draw("rect", { class: style, rx: 5, height: 28,
    x: fixed(X(column) - step / 2 + 2, 2), y: Y(index) - 14, width: fixed(step - 4, 2) });

  const band = draw("rect", { class: "ppo-band", rx: 6, y: Y(0) - 19, width: fixed(step, 2),
    height: Y(FACTS.length + extra.length - 1) - Y(0) + 36 });
  const fills = response.map((_, t) => cell(prompt.length + t, 0, "ppo-dot"));
  const boxes = [...prompt, ...response].map((_, column) =>
    cell(column, 0, column < prompt.length ? "ppo-bar-old" : "ppo-bar-open"));
  boxes.slice(prompt.length).forEach((box) => { box.style.fill = "none"; });
  const tokens = [...prompt, ...response].map((word, column) =>
    label({ x: fixed(X(column), 2), y: Y(0) + size * 0.36, "text-anchor": "middle",
      class: "ppo-heading ppo-halo", "font-size": word.length > 4 ? size * 0.8 : size }, word));
  const names = [...FACTS.map((key) => words[`line_${key}`]), ...extra].map((name, index) =>
    label({ x: 4, y: Y(index) + size * 0.36 }, name));
  const heads = [[0, words.prompt], [prompt.length, words.response]].map(([column, name]) =>
    label({ x: fixed(X(column) - step / 2 + 3, 2), y: 20, class: "ppo-heading" }, name));
  const border = draw("path", { class: "ppo-mark-line",
    d: `M${fixed(X(prompt.length) - step / 2, 2)},8V${Y(FACTS.length + extra.length - 1) + 16}` });
  const [positions, actions, olds, news, ratios] = [line(1, 0), line(2, 0), line(3), line(4), line(5)];
  const more = extra.map((_, index) => line(FACTS.length + index));
  layer.append(band, ...fills, ...boxes, border, ...tokens, ...names, ...heads, ...positions,
    ...actions, ...olds, ...news, ...ratios, ...more.flat());
  const bars = shares ? histogram(layer, { shares, reach, size, first, words }) : () => {};

  // A cross and a colour, where something is not as it should be.
  const mark = (node, words_, wrong) => {
    write(node, words_ + (wrong ? "✕" : ""));
    node.style.fill = wrong ? "var(--ppo-worse)" : "";
    node.style.fontWeight = wrong ? 700 : "";
  };
  return ({ way, revealed, recording }, found) => {
    const books = recording.ways[way];
    const right = recording.ways.right ?? books;
    const shown = (value, t) => (books.mask[t] ? short(value) : "·");
    put(band, { x: fixed(X(prompt.length + found.place) - step / 2, 2) });
    positions.forEach((node, column) => mark(node, String(books.positions[column]),
      revealed && books.positions[column] !== right.positions[column]));
    actions.forEach((node, column) => {
      const t = column - prompt.length;
      const yes = t >= 0 && books.mask[t];
      mark(node, yes ? "1" : "0", revealed && t >= 0 && yes !== right.mask[t]);
    });
    response.forEach((_, t) => {
      const likely = right.mask[t] ? Math.exp(books.log_probs_old[t]) : 0;
      put(fills[t], { "fill-opacity": fixed(0.55 * likely, 3) });
      write(olds[t], shown(books.log_probs_old[t], t));
      write(news[t], shown(books.log_probs[t], t));
      mark(ratios[t], shown(found.ratios[t], t),
        revealed && books.mask[t] && Math.abs(found.ratios[t] - 1) > OFF);
      more.forEach((row, index) => write(row[t], shown(rows[extra[index]][t], t)));
    });
    bars(way);
  };
}

// Shares of ratios by their logarithm; the highest bar fills the height.
function histogram(layer, { shares, reach, size, first, words }) {
  const count = Object.values(shares)[0].length;
  const [left, right, top, bottom] = [WIDE.names + 70, WIDE.width - 40, first + 24, first + 92];
  const width = (right - left) / count;
  const X = (log) => left + width * ((log / reach + 1) * (count - 1) / 2 + 0.5);
  const bars = Array.from({ length: count }, (_, index) => draw("rect", { class: "ppo-bar-new",
    x: fixed(left + width * index + 1, 2), width: fixed(width - 2, 2) }));
  const ticks = [[Math.log(1 / 4), "0.25"], [Math.log(1 / 2), "0.5"], [0, "1"], [Math.log(2), "2"],
    [Math.log(4), "4"]];
  const said = label({ x: right, y: first + 14, "text-anchor": "end" }, "");
  layer.append(...bars, said,
    draw("path", { class: "ppo-frame", d: `M${left},${bottom}H${right}` }),
    label({ x: 4, y: first + 14 }, words.histogram),
    ...ticks.flatMap(([log, tick]) => [
      draw("path", { class: "ppo-frame", d: `M${fixed(X(log), 2)},${bottom}v5` }),
      label({ x: fixed(X(log), 2), y: bottom + size * 1.25, "text-anchor": "middle" }, tick)]));
  return (way) => {
    const highest = Math.max(...shares[way]);
    shares[way].forEach((share, index) => {
      const tall = (bottom - top) * share / highest;
      put(bars[index], { y: fixed(bottom - tall, 2), height: fixed(tall, 2) });
    });
    write(said, say(words, "share", { share: written(100 * highest, 0) }));
  };
}
