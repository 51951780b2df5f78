// A question: native radio buttons, one button, the verdict in words.

let quizzes = 0; // names of radio groups must differ within a page

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page });
  const { store, words, body, status, button } = shell;
  const group = `ppo-quiz-${Date.now()}-${(quizzes += 1)}`;
  const rows = store.get("options").map(({ letter, text, why, right }) => {
    const choice = make("input", { type: "radio", name: group, value: letter });
    const reason = make("p", { class: "ppo-soft" });
    const node = make("div", { class: "ppo-option" },
      make("label", {}, choice, `${letter}) ${text}`), reason);
    return { letter, text, why, right, choice, reason, node };
  });
  const answer = button("answer", () => {
    const chosen = rows.find((row) => row.choice.checked);
    if (chosen) store.set({ answer: chosen.letter });
    else write(status, words.choose);
  }, { class: "ppo-main" });
  const again = button("again", () => store.set({ answer: "" }));
  body.append(
    make("fieldset", { class: "ppo-options" }, make("legend", {}, store.get("asked")),
      ...rows.map((row) => row.node)),
    make("div", { class: "ppo-row" }, answer, again), status,
  );

  function update() {
    const letter = store.get("answer");
    const chosen = rows.find((row) => row.letter === letter);
    answer.hidden = Boolean(chosen);
    again.hidden = !chosen;
    for (const row of rows) {
      row.choice.disabled = Boolean(chosen);
      if (chosen) row.choice.checked = row === chosen;
      const verdict = !chosen || (row !== chosen && !row.right) ? ""
        : row.right ? "right" : "wrong";
      put(row.node, { "data-verdict": verdict });
      write(row.reason, chosen && row !== chosen ? row.why : "");
      row.reason.hidden = !row.reason.textContent;
    }
    write(status, chosen ? say(words, "verdict", {
      verdict: chosen.right ? words.right : words.wrong, letter, text: chosen.text,
      why: chosen.why }) : words.choose);
  }
  store.on(["answer"], update);
  update();
  return shell.dispose;
}

export default { render };
