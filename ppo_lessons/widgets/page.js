// The end of an offline page's script: a model without a kernel, and the address as a state.

function staticModel(traits) {
  const heard = new Map();
  const acts = (name) => heard.get(name) ?? heard.set(name, new Set()).get(name);
  return {
    get: (key) => traits[key],
    set(key, value) {
      if (Object.is(traits[key], value)) return;
      traits[key] = value;
      acts(`change:${key}`).forEach((act) => act());
    },
    on: (name, act) => acts(name).add(act),
    off: (name, act) => acts(name).delete(act),
    save_changes() {},
  };
}

const place = document.getElementById(PLACE);
render({ model: staticModel(TRAITS), el: place, page: true });
if (STATES.length > 1) {
  const root = place.firstElementChild;
  const open = () => { // the address ends in #name or #name?large
    const [name, look] = location.hash.slice(1).split("?");
    root.dispatchEvent(new CustomEvent("ppo-open", { detail: { name, large: look === "large" } }));
  };
  root.addEventListener("ppo-state", ({ detail: { name, large } }) =>
    history.replaceState(null, "", `#${name}${large ? "?large" : ""}`));
  addEventListener("hashchange", open);
  if (location.hash) open();
}
