// A slider over values that Python computed: it moves from one to the next, never between them.
function gridSlider(shell, { key, values, text, show = String, width = 260 }) {
  const { store } = shell;
  const input = make("input", { type: "range", min: 0, max: values.length - 1, step: 1,
    style: `width: ${width}px; flex-basis: ${width}px` });
  const shown = make("span", { class: "ppo-value", "aria-hidden": "true" });
  shell.listen(input, "input", () => store.set({ [key]: values[Number(input.value)] }));
  shell.watch([key], () => {
    input.value = String(values.indexOf(store.get(key)));
    put(input, { "aria-valuetext": show(store.get(key)) });
    write(shown, show(store.get(key)));
  });
  return make("label", {}, text, input, shown);
}
