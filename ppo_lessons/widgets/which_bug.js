// --- numbers: held to Python's by tests/test_widgets_browser.py

export function compute({ study, run, iteration }) {
  const both = [study.runs.healthy, study.runs[run]];
  return Object.fromEntries(PANELS.map(({ metric }) =>
    [metric, both.map((each) => each[metric][iteration - 1])]));
}

const LETTERS = ["a", "b", "c", "d", "e", "f", "g"];
const OTHERS = ["nothing", "critic_not_trained", "entropy_punished"];

// --- the whole

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status } = shell;
  const { runs, bugs, lines } = store.get("study");
  const last = runs.healthy.kl_k3.length;
  const state = () => store.pick("study", "run", "iteration", "guess", "revealed");
  const bugOf = (run) => bugs[run][0];
  // In the order of the alphabet: the place in the list tells nothing.
  const diagnoses = [...LETTERS.map(bugOf), ...OTHERS].map((bug) => [bug, words[`bug_${bug}`]])
    .sort(([, one], [, other]) => (one < other ? -1 : 1));
  const said = new Map(); // run -> whether the first guess was right
  const guess = guessRows(shell, {
    question: () => say(words, "guess", { run: words[`run_${store.get("run")}`] }),
    options: diagnoses,
    answer: (given) => {
      const bug = words[`bug_${bugOf(store.get("run"))}`];
      return given === null ? say(words, "guessed_nothing", { bug })
        : say(words, "guessed", { bug, guess: words[`bug_${given}`] });
    },
  });
  const choice = choiceRow(shell, { key: "run", name: words.run,
    options: LETTERS.map((letter) => [letter, words[`run_${letter}`]]),
    patch: (run) => ({ run, guess: null, revealed: false }) });
  guess.nodes[0].querySelector("select").style.maxWidth = "100%";
  const play = playRow(shell, { key: "iteration", first: 1, last: () => last, ms: () => 150 });
  const svg = draw("svg", { class: "ppo-wide" });
  const code = make("pre", { style: "overflow-x: auto; margin: 6px 0" });
  const tally = make("p", { class: "ppo-soft ppo-aside" });
  body.append(row(make("span", { class: "ppo-soft", "aria-hidden": "true" }, words.run), choice,
    play.node), ...guess.nodes, make("div", { style: "overflow-x: auto" },
    make("div", { class: "ppo-panels", style: "min-width: 640px" }, svg)),
  lineKey([["ppo-unclipped", words.legend_healthy], ["ppo-new", words.legend_run]]), code, status,
  tally, make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let drawn = null;
  function rebuild() {
    drawn = board(shell, svg, last);
    changeRun();
  }

  function changeRun() {
    drawn.run(state());
    guess.nodes[0].querySelector("select").value = "";
    update();
  }

  function count({ run, guess: given, revealed }) {
    if (revealed && given !== null && !said.has(run)) said.set(run, given === bugOf(run));
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
    const bug = bugOf(now.run);
    const panel = now.revealed ? bugs[now.run][1] : "";
    const shown = PANELS.find(({ metric }) => metric === (panel || "episode_return"));
    const [one, two] = numbers[shown.metric].map((value) => written(value, shown.digits));
    const [right, wrong] = lines[bug];
    code.hidden = !now.revealed;
    write(code, now.revealed ? `${words.line_right} ${right || words.line_none}\n`
      + `${words.line_wrong} ${wrong}` : "");
    const told = !now.revealed ? "sentence_hidden" : panel ? "sentence" : "sentence_nowhere";
    write(status, say(words, told, { run: words[`run_${now.run}`], bug: words[`bug_${bug}`],
      what: words[`what_${bug}`], panel: words[`panel_${panel}`], iteration: now.iteration,
      one, two }));
  }

  store.on(["large"], rebuild);
  store.on(["run"], changeRun);
  store.on(["iteration", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
