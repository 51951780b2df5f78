// A guess before the measurement: one input, one button; afterwards both numbers side by side.

function render({ model, el, page = false }) {
  const shell = makeShell({ model, el, page });
  const { store, words, body, status, button, listen } = shell;
  const [options, unit] = [store.get("options"), store.get("unit")];
  const input = options.length
    ? make("select", {}, make("option", { value: "" }, words.choose),
      ...options.map((option) => make("option", { value: option }, option)))
    : make("input", { type: "number", step: "any" });
  const keep = button("keep", () => {
    if (input.value === "") return write(status, words.none);
    store.set({ guess: options.length ? input.value : Number(input.value) });
  }, { class: "ppo-main" });
  listen(input, "keydown", (event) => {
    if (event.key === "Enter") keep.click();
  });
  const name = unit ? say(words, "guess_unit", { unit }) : words.guess;
  const row = make("div", { class: "ppo-row" }, make("label", {}, name, input), keep);
  body.append(make("p", {}, store.get("question")), row, status);

  const shown = (value) => (typeof value === "number" ? String(Number(value.toPrecision(3)))
    : value) + (unit ? ` ${unit}` : "");

  function update() {
    const [guess, measured] = [store.get("guess"), store.get("measured")];
    if (guess !== null && input.value === "") input.value = String(guess);
    row.hidden = measured !== null;
    if (guess === null) write(status, words.none);
    else if (measured === null) write(status, say(words, "kept", { guess: shown(guess) }));
    else write(status, say(words, "compared", { guess: shown(guess), measured: shown(measured) }));
  }
  store.on(["guess", "measured"], update);
  update();
  return shell.dispose;
}

export default { render };
