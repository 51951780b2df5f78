// --- the whole

const WAYS = ["right", "one_place_late", "padding_in_positions", "dropout_left_on",
  "temperature_forgotten", "few_words_only", "eos_left_out", "padding_as_actions"];

// All that the words ask for.
function factsOf(words, { way, recording }, found) {
  const books = recording.ways[way];
  const { place } = found;
  const facts = {
    way: words[`way_${way}`], belief: words[`belief_${way}`], actions: found.actions,
    off: found.off, farthest: fine(found.farthest), number: place + 1,
    text: recording.response[place], old: fine(books.log_probs_old[place]),
    new: fine(books.log_probs[place]), ratio: fine(found.ratios[place]),
  };
  const token = books.mask[place] ? "sentence_token" : "sentence_no_action";
  return { ...facts, token: say(words, token, facts),
    ratios: say(words, found.off ? "sentence_off" : "sentence_all_one", facts) };
}

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page, mark: "question", kept: ["guess"] });
  const { store, words, body, status, button } = shell;
  const state = () => store.pick("way", "token", "revealed", "recording");
  const names = WAYS.filter((way) => way in store.get("recording").ways);
  const ways = names.map((way) => [way, words[`way_${way}`]]);
  const guess = guessRows(shell, {
    question: () => words.guess, options: ways,
    answer: (said) => {
      const way = words[`way_${store.get("way")}`];
      return said === null ? say(words, "guessed_nothing", { way })
        : say(words, "guessed", { way, guess: words[`way_${said}`] });
    },
  });
  // Some other program, whose place in the list tells nothing.
  const another = button("another", () => {
    const others = names.filter((way) => way !== store.get("way"));
    store.set({ way: others[Math.floor(Math.random() * others.length)] });
  });
  guess.nodes[0].append(another);
  guess.nodes[0].querySelector("select").style.width = "250px"; // the ways have long names
  const choice = choiceRow(shell, { key: "way", name: words.way, options: ways });
  const svg = draw("svg", { class: "ppo-wide" });
  const slider = sliderRow(shell, { key: "token", min: 1, digits: 0, step: 1,
    max: store.get("recording").response.length });
  body.append(...guess.nodes, make("div", { style: "overflow-x: auto" },
    make("div", { class: "ppo-panels", style: "min-width: 820px" }, svg)), row(slider,
    lineKey([["ppo-bar-old", words.legend_prompt], ["ppo-bar-new", words.legend_likely]])),
  choice, status, make("p", { class: "ppo-soft ppo-aside" }, words.help));

  let change;
  function rebuild() {
    change = stripPanel(shell, svg);
    update();
  }

  function update() {
    const now = state();
    const found = compute(now);
    change(now, found);
    guess.update(names.length > 1);
    choice.hidden = !now.revealed || names.length === 1;
    const facts = factsOf(words, now, found);
    write(status, say(words, now.revealed ? "sentence" : "sentence_hidden", facts));
  }

  store.on(["large", "recording"], rebuild);
  store.on(["way", "token", "guess", "revealed"], update);
  rebuild();
  return shell.dispose;
}

export default { render };
