// --- numbers: held to Python's by tests/test_widgets_browser.py

export function firstAbove(numbers, limit) {
  return numbers.findIndex((number) => number > limit) + 1;
}

export function compute({ study, other, iteration }) {
  const pair = (metric) => ["seed_1", other].map((name) => study.runs[name][metric][iteration - 1]);
  return {
    episode_return: pair("episode_return"),
    kl_k3: pair("kl_k3"),
    fraction_outside: pair("fraction_outside"),
    fraction_zero_gradient: pair("fraction_zero_gradient"),
    entropy: pair("entropy"),
    first_jump: firstAbove(study.runs[other].kl_k3, JUMP),
  };
}

const JUMP = 0.05;
const OTHERS = ["large_rate", "no_clip", "seed_2"];

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const last = store.get("study").runs.seed_1.kl_k3.length;
  const state = () => store.pick("study", "other", "iteration", "guess", "revealed");
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { other: words[`run_${store.get("other")}`] }),
    range: () => ({ low: 0, high: last, whole: true }),
    answer: (said) => {
      const { first_jump } = compute(state());
      const never = first_jump === 0;
      if (said === null) {
        return never ? words.guessed_nothing_never : say(words, "guessed_nothing", { first_jump });
      }
      return say(words, never ? "guessed_never" : "guessed", { first_jump, guess: said });
    },
  });
  const panels = [draw("svg"), draw("svg")];
  const play = playRow(shell, { key: "iteration", first: 1, last: () => last, ms: () => 150 });
  const key = make("div");
  const silent = make("p", { class: "ppo-soft ppo-aside" });
  body.append(
    row(make("span", { class: "ppo-soft", "aria-hidden": "true" }, words.other),
      choiceRow(shell, { key: "other", name: words.other,
        options: OTHERS.map((name) => [name, words[`run_${name}`]]) }), play.node),
    ...guess.nodes, make("div", { class: "ppo-panels" }, ...panels), key, status, silent,
    make("p", { class: "ppo-soft ppo-aside" }, words.help),
  );

  // A hand in the curves moves the iteration, too.
  let atX = () => 1;
  let held = false;
  const follow = (event) => {
    const frame = panels[0].getScreenCTM().inverse();
    const { x } = new DOMPoint(event.clientX, event.clientY).matrixTransform(frame);
    play.halt();
    store.set({ iteration: clamp(Math.round(atX(x)), 1, last) });
  };
  shell.listen(panels[0], "pointerdown", (event) => {
    held = true;
    panels[0].setPointerCapture(event.pointerId);
    follow(event);
  });
  shell.listen(panels[0], "pointermove", (event) => held && follow(event));
  for (const type of ["pointerup", "pointercancel"]) {
    shell.listen(panels[0], type, () => (held = false));
  }

  let updates = [];
  function rebuild() {
    const strips = stripPanel(shell, panels[0], last);
    atX = strips.atX;
    updates = [strips, mapPanel(shell, panels[1])];
    changeRun();
  }

  function changeRun() {
    updates[0].run(state());
    key.replaceChildren(keyRow(words, store.get("other")));
    update();
  }

  function update() {
    const now = state();
    const numbers = compute(now);
    for (const each of updates) each.update(now, numbers);
    guess.update();
    play.update();
    const [one, two] = numbers.fraction_zero_gradient.map((share) => written(share, 2));
    write(silent, say(words, "silent", { one, two }));
    const shown = (metric, digits) => numbers[metric].map((number) => written(number, digits));
    const [return_one, return_two] = shown("episode_return", 0);
    const [kl_one, kl_two] = shown("kl_k3", 4);
    const [entropy_one, entropy_two] = shown("entropy", 2);
    const told = now.revealed ? (numbers.first_jump ? "sentence" : "sentence_never")
      : "sentence_hidden";
    write(status, say(words, told, { other: words[`run_${now.other}`], iteration: now.iteration,
      return_one, return_two, kl_one, kl_two, entropy_one, entropy_two,
      jump: numbers.first_jump }));
  }

  store.on(["large"], rebuild);
  store.on(["other"], changeRun);
  store.on(["iteration", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

function keyRow(words, other) {
  const node = make("p", { class: "ppo-soft ppo-row", "aria-hidden": "true" });
  const piece = (text, mark) => node.append(make("span", { class: "ppo-key" },
    draw("svg", { class: "ppo-long", viewBox: "0 0 28 18" }, mark), text));
  piece(words.legend_one, draw("path", { class: "ppo-unclipped", d: "M0,9H28" }));
  piece(say(words, "legend_two", { other: words[`run_${other}`] }),
    draw("path", { class: "ppo-new", d: "M0,9H28" }));
  piece(words.legend_half, draw("path", { class: "ppo-ink", "stroke-width": 2.5, d: "M0,9H28" }));
  piece(words.legend_jump, draw("path", { class: "ppo-mark", d: MARKS.hidden,
    "data-kind": "hidden", transform: "translate(14,9)" }));
  piece(words.legend_guess, draw("path", { class: "ppo-mark", d: MARKS.silent,
    "data-kind": "silent", transform: "translate(14,9)" }));
  return node;
}

export default { render };
