// --- numbers: held to Python's by tests/test_widgets_browser.py

export function compute({ study, run, look }) {
  const both = [study.runs.healthy, study.runs[run]];
  return Object.fromEntries(PANELS.map(({ metric }) =>
    [metric, both.map((each) => each[metric][look - 1])]));
}

const LETTERS = ["a", "b", "c", "d", "e", "f"];
const VERDICTS = ["healthy", "hacked", "too_far", "held_back"];

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const { verdicts, iterations } = store.get("study");
  const state = () => store.pick("study", "run", "look", "guess", "revealed");
  const verdictOf = (run) => verdicts[run][0];
  const said = new Map(); // run -> whether the first guess was right
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { run: words[`run_${store.get("run")}`] }),
    options: VERDICTS.map((each) => [each, words[`verdict_${each}`]]),
    answer: (given) => {
      const verdict = words[`verdict_${verdictOf(store.get("run"))}`];
      return given === null ? say(words, "guessed_nothing", { verdict })
        : say(words, "guessed", { verdict, guess: words[`verdict_${given}`] });
    },
  });
  const choice = choiceRow(shell, { key: "run", name: words.run,
    options: LETTERS.map((letter) => [letter, words[`run_${letter}`]]),
    patch: (run) => ({ run, guess: null, revealed: false }) });
  guess.nodes[0].querySelector("select").style.maxWidth = "100%";
  const play = playRow(shell, { key: "look", first: 1, last: () => iterations.length,
    ms: () => 300 });
  const svg = draw("svg", { class: "ppo-wide" });
  const tally = make("p", { class: "ppo-soft ppo-aside" });
  body.append(row(make("span", { class: "ppo-soft", "aria-hidden": "true" }, words.run), choice,
    play.node), ...guess.nodes, make("div", { style: "overflow-x: auto" },
    make("div", { class: "ppo-panels", style: "min-width: 640px" }, svg)),
  lineKey([["ppo-unclipped", words.legend_healthy], ["ppo-new", words.legend_run]]), status,
  tally, make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let drawn = null;
  function rebuild() {
    drawn = board(shell, svg, iterations);
    changeRun();
  }

  function changeRun() {
    drawn.run(state());
    guess.nodes[0].querySelector("select").value = "";
    update();
  }

  function count({ run, guess: given, revealed }) {
    if (revealed && given !== null && !said.has(run)) said.set(run, given === verdictOf(run));
    const right = [...said.values()].filter(Boolean).length;
    tally.hidden = said.size === 0;
    write(tally, say(words, "tally", { right, asked: said.size }));
  }

  function update() {
    const now = state();
    const numbers = compute(now);
    drawn.update(now, numbers);
    guess.update();
    play.update();
    count(now);
    const panel = now.revealed ? verdicts[now.run][1] : "";
    const shown = PANELS.find(({ metric }) => metric === (panel || "score"));
    const [one, two] = numbers[shown.metric].map((value) => written(value, shown.digits));
    const [before, right] = numbers.success.map((value) => written(100 * value, 0));
    const told = !now.revealed ? "sentence_hidden" : panel ? "sentence" : "sentence_nowhere";
    write(status, say(words, told, { run: words[`run_${now.run}`],
      verdict: words[`verdict_${verdictOf(now.run)}`], setting: words[`setting_${now.run}`],
      panel: panel ? words[`panel_${panel}`] : "", iteration: iterations[now.look - 1],
      one, two, right, before }));
  }

  store.on(["large"], rebuild);
  store.on(["run"], changeRun);
  store.on(["look", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
