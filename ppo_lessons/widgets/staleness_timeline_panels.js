// The two panels of StalenessTimeline: lanes with the three policies, recorded runs by age.

const MARK_PATHS = {
  nothing: "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z",
  ratio: "M-4.5,-4.5H4.5V4.5H-4.5Z",
  clip: "M0,-6L5.5,4.5H-5.5Z",
  decoupled: "M0,-6.5L5.5,0L0,6.5L-5.5,0Z",
};
const LOSSES = {
  nothing: { colour: "var(--ppo-worse)", dash: "none" },
  ratio: { colour: "var(--ppo-old)", dash: "9 4" },
  clip: { colour: "var(--ppo-better)", dash: "none" },
  decoupled: { colour: "var(--ppo-new)", dash: "2 4" },
};

// A piece of a loss's curve with its mark.
function lossLine(name) {
  return draw("path", { style: `fill: none; stroke: ${LOSSES[name].colour}`, "stroke-width": 2,
    "stroke-dasharray": LOSSES[name].dash });
}

function lossMark(name, scale = 1) {
  const open = name === "ratio" ? "var(--ppo-paper)" : LOSSES[name].colour;
  return draw("path", { d: MARK_PATHS[name], transform: `scale(${scale})`, "stroke-width": 1.5,
    style: `fill: ${open}; stroke: ${LOSSES[name].colour}` });
}

// What each loss compares: [word, first, last version, class of its line].
function spansOf(correction, { behaviour, proximal, now }) {
  return {
    nothing: [["span_none", behaviour, behaviour, ""]],
    ratio: [["span_behaviour", behaviour, now, "ppo-new"]],
    clip: [["span_behaviour", behaviour, now, "ppo-new"]],
    decoupled: [["span_weight", behaviour, proximal, "ppo-unclipped"],
      ["span_clip", proximal, now, "ppo-new"]],
  }[correction];
}

function timePanel(shell, svg) {
  const { store, words } = shell;
  const updates = store.get("updates");
  const size = store.get("large") ? 20 : 15;
  const { width, height } = PANEL;
  const spare = height - 17.5 * size;
  const [left, right] = [5.9 * size, width - 3.6 * size];
  const [top, low] = [3.5 * size, 7.2 * size + spare];
  const bottom = height - 3.5 * size;
  const last = BATCHES * updates;
  const X = (version) => left + (version / last) * (right - left);
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${width} ${height}` });
  svg.replaceChildren(back);
  back.append(label({ class: "ppo-heading", x: size * 0.3, y: size * 1.2 }, words.time_title),
    draw("path", { class: "ppo-frame", d: `M${left},${bottom}H${right}` }),
    label({ x: width / 2, y: height - size * 0.6, "text-anchor": "middle" }, words.time_axis));
  for (const batch of [0, 5, 10, 15, 20]) {
    back.append(draw("path", { class: "ppo-frame", d: `M${X(batch * updates)},${bottom}v5` }),
      label({ x: X(batch * updates), y: bottom + size * 1.3, "text-anchor": "middle" },
        String(batch * updates)));
  }
  const arrows = Array.from({ length: BATCHES }, () => draw("path", { fill: "none" }));
  back.append(...arrows);
  for (const [y, name, look] of [[top, "generator", "var(--ppo-old)"],
    [low, "trainer", "var(--ppo-new)"]]) {
    back.append(draw("path", { d: `M${left},${y}H${right}`, stroke: look, "stroke-width": 2 }),
      label({ x: left - size * 0.7, y: y + size * 0.35, "text-anchor": "end" }, words[name]));
    for (let batch = 0; batch < BATCHES; batch += 1) {
      back.append(draw("path", { d: `M${fixed(X(batch * updates), 2)},${y - 3}v6`, stroke: look,
        "stroke-width": 2 }));
    }
  }
  const rows = [0, 1].map((index) => {
    const y = low + (2.5 + 2.1 * index) * size;
    const bar = draw("path");
    const text = label({ x: width / 2, y: y + size * 1.15, "text-anchor": "middle" }, "");
    back.append(bar, text);
    return { y, bar, text };
  });
  const policies = [
    { name: "behaviour", lane: top, shift: [0, -0.75], anchor: "middle",
      mark: draw("circle", { r: size * 0.45, class: "ppo-bar-open",
        style: "stroke: var(--ppo-old); stroke-width: 3" }) },
    { name: "proximal", lane: low, shift: [-0.4, 1.5], anchor: "end",
      mark: draw("path", { class: "ppo-mark", "data-kind": "hidden",
        d: MARKS.hidden, transform: `scale(${size / 12})` }) },
    { name: "current", lane: low, shift: [0.4, 1.5], anchor: "start",
      mark: draw("circle", { r: size * 0.26, class: "ppo-dot" }) },
  ].map((each) => {
    const place = draw("g", {}, each.mark);
    const text = label({ class: "ppo-heading ppo-halo", "text-anchor": each.anchor }, "");
    back.append(place, text);
    return { ...each, place, text };
  });
  return ({ correction }, found) => {
    const batch = Math.floor(found.now / updates);
    arrows.forEach((arrow, index) => put(arrow, {
      visibility: index <= batch + found.waiting.length ? "visible" : "hidden",
      class: index < batch ? "ppo-frame" : index === batch ? "ppo-ink" : "ppo-edge",
      style: index === batch ? "stroke-width: 4" : "stroke-width: 1.3",
      "stroke-opacity": index < batch ? 0.4 : 1,
      d: line([[X(found.drawn[index]), top], [X(index * updates), low]]) }));
    const at = { behaviour: found.behaviour, proximal: found.proximal, current: found.now };
    for (const { name, lane, shift, place, text } of policies) {
      put(place, { transform: `translate(${fixed(X(at[name]), 2)},${lane})` });
      put(text, { x: fixed(X(at[name]) + shift[0] * size, 2), y: lane + shift[1] * size });
      write(text, say(words, `at_${name}`, { version: at[name] }));
    }
    const spans = spansOf(correction, found);
    rows.forEach(({ y, bar, text }, index) => {
      const [key, from, to, look] = spans[index] ?? [null, 0, 0, ""];
      put(bar, { class: look, visibility: look ? "visible" : "hidden",
        d: `M${fixed(X(from), 2)},${y - 5}v10M${fixed(X(from), 2)},${y}H${fixed(X(to), 2)}m0,-5v10` });
      write(text, key ? say(words, key, { versions: to - from }) : "");
    });
  };
}

function endsPanel(shell, svg) {
  const { store, words } = shell;
  const { recording, updates } = store.pick("recording", "updates");
  const losses = Object.keys(LOSSES).filter((name) => recording[`${updates}/${name}`]);
  const cellsOf = (name) => Object.entries(recording[`${updates}/${name}`])
    .map(([age, [shares]]) => [Number(age), shares]).sort((a, b) => a[0] - b[0]);
  const ages = [...new Set(losses.flatMap((name) => cellsOf(name).map(([age]) => age)))];
  const across = (age) => Math.log2(1 + age);
  const plot = axes(svg, { x: [-0.35, 4.45], y: [0, 100], yTicks: [0, 25, 50, 75, 100],
    xTicks: ages.map(across), xTick: (place) => String(Math.round(2 ** place - 1)),
    xLabel: words.ends_axis, yLabel: words.ends_share, title: words.ends_title,
    large: store.get("large") });
  const { X, Y, box, size, layer } = plot;
  const here = draw("path", { class: "ppo-mark-line" });
  const hidden = label({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2,
    "text-anchor": "middle", class: "ppo-halo" }, words.hidden_ends);
  const shown = draw("g");
  const curves = losses.map((name) => {
    const path = put(lossLine(name), { d: line(cellsOf(name).map(([age, shares]) =>
      [X(across(age)), Y(100 * middle(shares))])) });
    shown.append(path);
    for (const [age, shares] of cellsOf(name)) {
      for (const [share, scale] of [...shares.map((each) => [each, 0.6]), [middle(shares), 1.1]]) {
        shown.append(draw("g", { transform: `translate(${fixed(X(across(age)), 2)},`
          + `${fixed(Y(100 * share), 2)})` }, lossMark(name, scale)));
      }
    }
    return [name, path];
  });
  const ring = draw("circle", { class: "ppo-ink", r: size * 0.75 });
  layer().append(here, shown, ring, hidden);
  return ({ correction, capacity, revealed }, { recorded_age, answer }) => {
    const known = revealed && answer !== null;
    put(here, { d: `M${fixed(X(across(capacity - 1)), 2)},${box.top}V${box.bottom}` });
    put(shown, { visibility: revealed ? "visible" : "hidden" });
    put(hidden, { visibility: revealed ? "hidden" : "visible" });
    put(ring, { visibility: known ? "visible" : "hidden" });
    if (known) put(ring, { cx: fixed(X(across(recorded_age)), 2), cy: fixed(Y(answer), 2) });
    for (const [name, path] of curves) put(path, { "stroke-width": name === correction ? 4 : 1.8 });
  };
}
