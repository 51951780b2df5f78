// The page only draws: what is kept, and when it is sent, Python decides.
const TALL = { width: 520, height: 380 };
const ROUND = [1, 2, 5, 10];

// The next round number above a value, for the end of an axis.
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ROUND.find((factor) => factor * power >= value * 0.999) * power;
}

// Ends of an axis that holds 0 and every value.
export function around(values) {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  return [low < 0 ? -roundUp(-low) : 0, high > 0 || low === 0 ? roundUp(high) : 0];
}

const LOG_KL = (kl) => clamp(Math.log10(Math.max(kl, 1e-9)), -4, 1);
const HALVES = [
  [
    { key: "episode_return", metrics: ["episode_return"], digits: 0 },
    { key: "kl_k3", metrics: ["kl_k3"], digits: 4, scale: LOG_KL, range: [-4, 1],
      ends: ["10⁻⁴", "10"] },
    { key: "fractions", metrics: ["fraction_outside", "fraction_zero_gradient"], digits: 2,
      range: [0, 1] },
  ],
  [
    { key: "entropy", metrics: ["entropy"], digits: 2 },
    { key: "value_loss", metrics: ["value_loss"], digits: 2 },
    { key: "ev", metrics: ["ev_lambda", "ev_monte_carlo"], digits: 2, range: [-1, 1],
      scale: (value) => clamp(value, -1, 1) },
  ],
];

// Pieces of a curve; where nothing could be computed there is a gap, a lonely point is a dash.
function pieces(points) {
  const parts = [[]];
  for (const point of points) {
    if (point[1] === null) parts.push([]);
    else parts.at(-1).push(point);
  }
  return parts.filter((part) => part.length).map((part) =>
    (part.length > 1 ? line(part) : `${line(part)}h2`)).join("");
}

function half(shell, svg, strips) {
  const { store, words } = shell;
  const size = store.get("large") ? 20 : 15;
  const [left, right] = [size * 3.8, TALL.width - size * 0.8];
  const bottom = TALL.height - size * 2.6;
  const back = draw("g", { "aria-hidden": "true", class: "ppo-axes", "font-size": size });
  put(svg, { viewBox: `0 0 ${TALL.width} ${TALL.height}` });
  svg.replaceChildren(back);
  const ends = ["start", "end"].map((anchor, index) => label({ x: index ? right : left,
    y: bottom + size * 1.1, "text-anchor": anchor }, ""));
  back.append(...ends, label({ x: (left + right) / 2, y: TALL.height - size * 0.5,
    "text-anchor": "middle" }, words.steps_axis));
  const drawn = strips.map((strip, index) => {
    const top = (index * bottom) / strips.length + size * 1.5;
    const low = ((index + 1) * bottom) / strips.length - size * 0.45;
    const value = label({ class: "ppo-heading", x: right, y: top - size * 0.45,
      "text-anchor": "end" }, "");
    const ticks = [low, top].map((y) => label({ x: left - size * 0.4, y: y + size * 0.35,
      "text-anchor": "end" }, ""));
    const pinned = draw("path", { class: "ppo-unclipped" });
    const curves = strip.metrics.map((_, at) => draw("path", { class: at ? "ppo-mark-line" : "ppo-new" }));
    back.append(...[top, (top + low) / 2].map((y) => draw("line", { class: "ppo-grid", x1: left,
      x2: right, y1: y, y2: y })), draw("path", { class: "ppo-frame", d: `M${left},${top}V${low}H${right}` }),
      label({ class: "ppo-heading", x: left, y: top - size * 0.45 }, words[`panel_${strip.key}`]),
      value, ...ticks, pinned, ...curves);
    return { ...strip, top, low, value, ticks, pinned, curves };
  });

  return (points, pinned, total) => {
    const furthest = Math.max(total, points.env_steps.at(-1) ?? 0, pinned?.env_steps.at(-1) ?? 0);
    const X = (step) => left + (step / furthest) * (right - left);
    [0, furthest].forEach((step, index) => write(ends[index], step.toLocaleString("en")));
    for (const { metrics, digits, range, scale = (value) => value, ...strip } of drawn) {
      const shown = metrics.map((metric) => points[metric]);
      const all = pinned ? [...shown, pinned[metrics[0]]] : shown;
      const [from, to] = range ?? around(all.flat());
      const Y = (value) => strip.low
        - ((scale(value) - from) / (to - from)) * (strip.low - strip.top);
      const curve = (run, metric) => pieces(run[metric].map((value, at) =>
        [X(run.env_steps[at]), value === null ? null : Y(value)]));
      metrics.forEach((metric, at) => put(strip.curves[at], { d: curve(points, metric) }));
      put(strip.pinned, { d: pinned ? curve(pinned, metrics[0]) : "" });
      const texts = strip.ends ?? [from, to].map((end) => String(end).replace("-", "−"));
      strip.ticks.forEach((tick, at) => write(tick, texts[at]));
      write(strip.value, shown.map((series) => series.at(-1) ?? null)
        .map((value) => (value === null ? "–" : written(value, digits))).join(", "));
    }
  };
}

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page });
  const { store, words, body, status, button } = shell;
  let [paused, pinned, frame] = [false, null, null];
  const panels = HALVES.map(() => draw("svg"));
  const where = make("span", { class: "ppo-value" });
  const pause = button("pause", () => {
    paused = !paused;
    put(pause, { "aria-pressed": paused });
    update();
  }, { "aria-pressed": "false" });
  const pin = button("pin", () => {
    pinned = pinned ? null : store.get("points");
    write(pin, pinned ? words.unpin : words.pin);
    redraw();
  });
  body.append(row(pause, pin, where), make("div", { class: "ppo-panels" }, ...panels),
    lineKey([["ppo-new", words.legend_run], ["ppo-mark-line", words.legend_second],
      ["ppo-unclipped", words.legend_pinned]]), status);

  let shown = { points: store.get("points"), now: store.get("now") };
  let halves = [];
  function rebuild() {
    halves = HALVES.map((strips, index) => half(shell, panels[index], strips));
    redraw();
  }

  function redraw() {
    const { points, now } = shown;
    for (const each of halves) each(points, pinned, now.total_steps);
    const done = points.env_steps.at(-1) ?? 0;
    const left = Math.max(now.total_steps - done, 0) / Math.max(now.speed, 1);
    pin.disabled = now.iteration === 0;
    const told = { ...now, speed: now.speed.toLocaleString("en"), left: written(left, 0) };
    write(where, now.iteration ? say(words, now.running ? "progress" : "ended", told) : "");
    // read aloud when it changes: so it says nothing that moves ten times a second
    write(status, now.running ? words.training : now.iteration
      ? say(words, "sentence", { number: now.iteration }) : words.waiting);
  }

  function update() {
    if (paused) return;
    shown = { points: store.get("points"), now: store.get("now") };
    frame ??= requestAnimationFrame(() => {
      frame = null;
      redraw();
    });
  }

  shell.endings.push(() => frame !== null && cancelAnimationFrame(frame));
  store.on(["large"], rebuild);
  store.on(["points", "now"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
