"""What tests in a browser share: a visit to a page, what can be asked there, states by chance."""

import random

import traitlets

from ppo_lessons.widgets import find_widget
from ppo_lessons.widgets.base import TeachingWidget
from ppo_lessons.widgets.registry import HOME, QUESTIONS, VIEWS
from ppo_lessons.widgets.traits import Choice, Choices, Number, Numbers, OneOf, Whole

TEACHING = [name for name in HOME.values() if name not in (*QUESTIONS, *VIEWS)]
INTERACTIVE = {"button", "slider", "spinbutton", "radio", "combobox", "checkbox", "textbox"}


class Visit:
    """A page, offline, with everything that it complained about or asked for."""

    def __init__(self, browser, file, *, state="", **look):
        look = {"viewport": {"width": 1200, "height": 900}} | look
        self.context = browser.new_context(**look)
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = file.as_uri()
        self.page.goto(self.address + (f"#{state}" if state else ""))

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        complaints = list(self.complaints)
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        self.context.close()
        if kind is None:  # each test also holds this
            assert complaints == []
            assert outside == []

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=True)

    def status(self):
        return self.page.get_by_role("status").inner_text()

    def wait_for_address(self, name):
        self.page.wait_for_function("name => location.hash === `#${name}`", arg=name)

    def open(self, name):
        """Go to a named state of the page that is open, as its address does."""
        self.page.evaluate("name => { location.hash = name; }", name)
        self.page.wait_for_function(
            "name => document.querySelector('.ppo-where').dataset.state === name",
            arg=name.partition("?")[0],
        )

    def values(self, selector=".ppo-handle"):
        """Values of the handles."""
        return self.page.eval_on_selector_all(
            selector, "nodes => nodes.map(node => Number(node.getAttribute('aria-valuenow')))"
        )

    def texts(self, selector=".ppo-handle"):
        """What a screen reader says of the handles."""
        return self.page.eval_on_selector_all(
            selector, "nodes => nodes.map(node => node.getAttribute('aria-valuetext'))"
        )

    def tab_through(self):
        """Names of what Tab reaches, in order, until it leaves the page."""
        names = []
        for _ in range(60):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("document.activeElement === document.body"):
                break
            names.append(self.focused() or self.page.evaluate("document.activeElement.tagName"))
        return names

    def accessible_nodes(self):
        """Role and name of each node of the accessible tree."""
        client = self.context.new_cdp_session(self.page)
        client.send("Accessibility.enable")
        nodes = client.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"]
        ]

    def height(self):
        return self.page.locator(".ppo").bounding_box()["height"]

    def focused(self):
        return self.page.evaluate(
            "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"
        )


# --- the script against Python ---------------------------------------------------------------

# For each set of traits: what the script computes, and the sentence that it shows.
RENDER_EACH = """async ([script, cases]) => {
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { compute, default: widget } = await import(address);
  const style = document.createElement("style");
  style.textContent = "* { transition: none; }";
  document.head.append(style);
  return cases.map((traits) => {
    const el = document.createElement("div");
    document.body.replaceChildren(el);
    const model = { get: (key) => traits[key], set: (key, value) => { traits[key] = value; },
      on() {}, off() {}, save_changes() {} };
    const dispose = widget.render({ model, el });
    const said = el.querySelector("[role=status]").textContent;
    dispose();
    return [compute ? compute(traits) : {}, said];
  });
}"""


def render_each(browser, script, cases):
    """What a script computes and says for each set of traits."""
    page = browser.new_page()
    try:
        return page.evaluate(RENDER_EACH, [script, cases])
    finally:
        page.close()


def plain_traits(widget):
    """The traits that the script reads."""
    return {name: getattr(widget, name) for name in widget.synced()}


def disagreements(browser, widgets, *, script=None):
    """Where numbers (to 1e-12) or sentence of the page differ from Python's."""
    script = script or widgets[0]._esm
    seen = render_each(browser, script, [plain_traits(each) for each in widgets])
    found = []
    for widget, (numbers, said) in zip(widgets, seen, strict=True):
        wanted = widget.numbers()
        if set(numbers) != set(wanted):
            found.append(f"compute gives {sorted(numbers)}, numbers() {sorted(wanted)}")
            continue
        found += [
            f"{name}: page {numbers[name]}, Python {wanted[name]}, {widget.state()}"
            for name in wanted
            if not same(numbers[name], wanted[name])
        ]
        if said != repr(widget):
            found.append(f"page: {said}\nPython: {widget!r}")
    return found


def same(got, want):
    if isinstance(want, (list, tuple)):
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, (bool, str)) or want is None or got is None:
        return got == want
    return abs(got - want) <= 1e-12 * max(1.0, abs(want))


# --- states by chance ------------------------------------------------------------------------


def random_widgets(name, count, *, seed=0):
    """Widgets whose states are drawn from the ranges of their traits, revealed."""
    made = find_widget(name)
    chance = random.Random(seed)
    widgets = []
    for _ in range(count):
        state = {key: drawn(made, key, chance) for key in made.STATE}
        if issubclass(made, TeachingWidget):
            state |= {"guess": None, "revealed": True}
        widgets.append(made(**state))
    return widgets


def drawn(made, key, chance):
    trait = made.class_traits()[key]
    if isinstance(trait, Numbers):
        length = len(trait.default_numbers)
        return [number_in(trait, chance) for _ in range(length)]
    if isinstance(trait, (Number, Whole)):
        return number_in(trait, chance)
    if isinstance(trait, Choices):
        return [chance.choice(trait.values) for _ in trait.default_words]
    if isinstance(trait, (Choice, OneOf)):
        return chance.choice(trait.values)
    if isinstance(trait, traitlets.Bool):
        return chance.random() < 0.5
    return trait.default()


def number_in(trait, chance):
    low, high, step = trait.range.low, trait.range.high, trait.step
    while True:
        if step:
            value = round(low + step * chance.randint(0, round((high - low) / step)), 12)
        else:
            value = chance.uniform(low, high)
        if trait.range.holds(value):
            return value


# --- looks -----------------------------------------------------------------------------------

LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "large": {"viewport": {"width": 1600, "height": 900}},
    "narrow": {"viewport": {"width": 420, "height": 1000}},
    "grey": {},
}
OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll(".ppo-panels svg")) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((node) => node.textContent
      && getComputedStyle(node).visibility !== "hidden");
    const boxes = texts.map((node) => [node.textContent, node.getBoundingClientRect()]);
    boxes.forEach(([words, a], index) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1
        || a.bottom > frame.bottom + 1) found.push(`${words} is cut`);
      for (const [other, b] of boxes.slice(index + 1)) {
        const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (width > 2 && height > 0.3 * Math.min(a.height, b.height)) {
          found.push(`${words} covers ${other}`);
        }
      }
    });
  }
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
  return found;
}"""


CONTRAST = """() => {
  const channel = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const ratio = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const paper = getComputedStyle(document.querySelector(".ppo")).backgroundColor;
  const seen = {};
  for (const node of document.querySelectorAll(".ppo :is(p, dt, dd, label, .ppo-key, svg text)")) {
    const style = getComputedStyle(node);
    if (!node.textContent.trim() || style.visibility === "hidden") continue;
    const color = node instanceof SVGElement ? style.fill : style.color;
    seen[node.textContent.slice(0, 40)] = ratio(color, paper);
  }
  for (const node of document.querySelectorAll(".ppo .ppo-curve:not(text)")) {
    const { stroke } = getComputedStyle(node);
    seen[`curve ${stroke}`] = ratio(stroke, paper) + 1.5;
  }
  return Object.entries(seen).filter(([, value]) => value < 4.5);
}"""
