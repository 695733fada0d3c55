// Wires the page to the WebAssembly. All answers and sentences come from there.
import { again, bits, chart } from "./draw.js";

const $ = (id) => document.getElementById(id);

// call asks the WebAssembly, and shows an error where the answer would stand.
const call = (name, argument = null) => new Promise((resolve, reject) => {
  globalThis.upbloom(name, JSON.stringify(argument), (text) => {
    const answer = JSON.parse(text);
    if (answer.error) reject(new Error(answer.error));
    else resolve(answer);
  });
});

// on runs f when the element is used, and shows its error in the place.
function on(id, event, place, f) {
  $(id).addEventListener(event, async (e) => {
    if (event === "submit") e.preventDefault();
    try {
      await f(e);
    } catch (error) {
      $(place).textContent = "This went wrong: " + error.message;
    }
  });
}

function element(name, ...content) {
  const e = document.createElement(name);
  e.append(...content);
  return e;
}

function facts(id, list) {
  $(id).replaceChildren(...list.map(({ name, value }) =>
    element("div", element("dt", name), element("dd", value))));
}

function rows(id, list) {
  $(id).replaceChildren(...list.map(([head, ...cells]) => {
    const th = element("th", element("bdi", head));
    th.scope = "row";
    return element("tr", th, ...cells.map((text) => element("td", text)));
  }));
}

// apart keeps the direction of each “item” of a text to itself: a name in Hebrew
// does not change places with what stands beside it.
const apart = (text) => text.split(/(“[^”]*”)/).map((part, i) => (i % 2 ? element("bdi", part) : part));

// say replaces a text that is announced, also if it is the same again.
function say(id, text) {
  $(id).replaceChildren(...apart(text));
  $(id).scrollTop = 0;
}

// A filter, filling.

function showTable(v, chosen) {
  say("table-text", v.text);
  bits($("table-bits"), { ...v.blocked, words: true });
  bits($("blocked-bits"), { ...v.blocked, words: true });
  bits($("classic-bits"), v.classic);
  const described = (p) => p.facts.map(({ name, value }) => `${name}: ${value}`).join(", ");
  $("table-bits").ariaLabel = $("blocked-bits").ariaLabel = "The bits of the blocked filter. " + described(v.blocked);
  $("classic-bits").ariaLabel = "The bits of the classic filter. " + described(v.classic);
  facts("table-facts", v.blocked.facts);
  for (const name of ["blocked", "classic"]) {
    facts(name + "-facts", v[name].facts.slice(-3));
    say(name + "-text", v[name].text || "No item is marked. Add one above, or ask for one.");
  }
  $("request").textContent = v.request || "Nothing yet: add an item, or ask for one.";
  const list = $("items");
  if (list.length !== v.items.length || list.lastChild?.value !== v.items.at(-1)) {
    list.replaceChildren(...v.items.map((item) => new Option(item, item)));
  }
  list.value = chosen ?? "";
}

const newTable = async () => showTable(await call("table.new", Number($("rate").value)));

// item reads a field. If it is empty, it says so in the place.
function item(id, place) {
  const text = $(id).value;
  if (text === "") {
    say(place, "There is no item: write one first.");
    $(id).focus();
  }
  return text;
}

on("table-form", "submit", "table-text", async () => {
  const text = item("item", "table-text");
  if (text) showTable(await call("table.add", text), text);
});
on("ask", "click", "table-text", async () => {
  const text = item("item", "table-text");
  if (text) showTable(await call("table.ask", text));
});
on("made", "click", "table-text", async () => showTable(await call("table.addMade", 20)));
on("false", "click", "table-text", async () => showTable(await call("table.findFalse")));
on("table-new", "click", "table-text", newTable);
on("rate", "change", "table-text", newTable);
on("paste-form", "submit", "table-text", async () => showTable(await call("table.addAll", $("paste").value)));
on("items", "change", "table-text", async () => {
  const text = $("items").value;
  showTable(await call("table.show", text), text);
});

// Too many items.

let over, running = 0;

function showOver(v) {
  over = v;
  $("over-text").textContent = v.text;
  chart($("over-chart"), v);
  $("over-step").disabled = $("over-run").disabled = v.done;
  const percent = (p) => (p ? p.y.toPrecision(2) + "%" : "–");
  rows("over-rows", v.lines[0].formula.slice(1).map(({ x }, i) => [
    x.toFixed(1),
    ...v.lines.flatMap((l) => [percent(l.measured[i]), percent(l.formula[i + 1])]),
  ]).filter((_, i) => i % 5 === 4));
}

const newOver = async () => {
  running++;
  $("over-text").ariaLive = "polite";
  showOver(await call("over.new"));
};

on("over-new", "click", "over-text", newOver);
on("over-step", "click", "over-text", async () => showOver(await call("over.step")));
on("over-run", "click", "over-text", async () => {
  const mine = ++running;
  $("over-text").ariaLive = "off"; // only the end is announced
  for (let v = over; !v.done && running === mine;) {
    v = await call("over.step");
    if (running !== mine) return;
    if (v.done) $("over-text").ariaLive = "polite";
    showOver(v);
    await new Promise(requestAnimationFrame);
  }
});

// What it costs.

// steps returns 1, 2, 5, 10 ... from low to high.
const steps = (low, high) => {
  const list = [];
  for (let ten = low; ten <= high; ten *= 10) list.push(ten, 2 * ten, 5 * ten);
  return list.filter((v) => v <= high);
};
const number = (v) => v.toLocaleString("en");
const sliders = [
  { id: "items-n", name: "Items", key: "items", values: steps(1e3, 1e8), at: 1e6, show: number },
  { id: "one-in", name: "False positives", key: "oneIn", values: steps(10, 1e6), at: 100, show: (v) => "1 in " + number(v) },
  { id: "filters", name: "Filters of this size", key: "filters", values: steps(1, 1e3), at: 1, show: number },
  { id: "adds", name: "Adds a day", key: "adds", values: [0, ...steps(100, 1e8)], at: 1e4, show: number },
  { id: "lookups", name: "Look-ups a day", key: "lookups", values: [0, ...steps(100, 1e8)], at: 1e5, show: number },
];

function makeSliders() {
  $("sliders").replaceChildren(...sliders.map((s) => {
    const input = element("input"), output = element("output"), label = element("label", s.name);
    Object.assign(input, { id: s.id, type: "range", min: 0, max: s.values.length - 1, value: s.values.indexOf(s.at) });
    label.htmlFor = output.htmlFor = s.id;
    output.id = s.id + "-value";
    const box = element("div", element("div", label, output), input);
    box.className = "slider";
    return box;
  }));
}

async function showPlan() {
  const wish = { commands: $("price-commands").value, storage: $("price-storage").value };
  for (const s of sliders) {
    const value = s.values[$(s.id).value];
    wish[s.key] = value;
    $(s.id + "-value").textContent = s.show(value);
    $(s.id).setAttribute("aria-valuetext", s.show(value));
  }
  const p = await call("plan", wish);
  rows("plan-rows", p.rows.map((r) => [r.name, r.blocked, r.classic]));
  facts("plan-bill", p.bill);
  $("plan-total").textContent = p.total;
  for (const name of ["commands", "storage"]) $("price-" + name).ariaInvalid = p.notPrices.includes(name);
  $("price-wrong").textContent = p.note;
  say("plan-text", p.text);
}

// A window, whose panes turn.

function showWindow(v) {
  say("window-text", v.text);
  const box = $("panes");
  while (box.children.length > v.panes.length) box.lastChild.remove();
  while (box.children.length < v.panes.length) {
    const canvas = element("canvas");
    canvas.role = "img";
    box.append(element("figure", canvas, element("figcaption")));
  }
  v.panes.forEach((pane, i) => {
    const [canvas, caption] = box.children[i].children;
    bits(canvas, { bits: pane.bits, gutter: false });
    const set = pane.bits.replaceAll("0", "").length;
    caption.replaceChildren(element("strong", `Pane ${i}`), ` ${pane.role}. ${set} bits are set.`);
    caption.className = pane.state;
    canvas.ariaLabel = `The bits of pane ${i}, of which ${set} are set`;
  });
  facts("window-facts", v.facts);
  const known = v.items.map(({ item, added, found }) => [item, added, found ? "yes" : "no"]);
  rows("window-items", known.length ? known : [["none yet", "", ""]]);
}

const newWindow = async () =>
  showWindow(await call("window.new", Number(document.querySelector("[name=panes]:checked").value)));

on("window-form", "submit", "window-text", async () => {
  const text = item("window-item", "window-text");
  if (text) showWindow(await call("window.add", text));
});
on("window-ask", "click", "window-text", async () => {
  const text = item("window-item", "window-text");
  if (text) showWindow(await call("window.ask", text));
});
on("window-copy", "click", "window-text", async () => {
  const text = item("window-item", "window-text");
  if (text) showWindow(await call("window.askCopy", text));
});
on("window-made", "click", "window-text", async () => showWindow(await call("window.addMade", 20)));
on("window-hours", "click", "window-text", async () => showWindow(await call("window.later", 6)));
on("window-day", "click", "window-text", async () => showWindow(await call("window.later", 24)));
on("window-new", "click", "window-text", newWindow);
for (const radio of document.getElementsByName("panes")) radio.addEventListener("change", newWindow);

// Start.

const buttons = document.querySelectorAll("button, input, select, textarea");
for (const b of buttons) b.disabled = true;
makeSliders();
try {
  const go = new globalThis.Go();
  const { instance } = await WebAssembly.instantiateStreaming(fetch("built/playground.wasm"), go.importObject);
  go.run(instance).then(() => { $("loading").textContent = "The WebAssembly has ended. Load the page again."; });
  const prices = await call("prices");
  $("price-commands").value = prices.commands.toFixed(2);
  $("price-storage").value = prices.storage.toFixed(2);
  $("price-note").textContent = `The prices are those of the pay-as-you-go plan as documented in ${prices.year}, ` +
    `where the first ${prices.freeStorage} GB is free. If they have changed, change them here. ` +
    "A global database bills each Add, and each look-up that the primary answers, once more for each read region.";
  for (const b of buttons) b.disabled = false;
  await newTable();
  await newOver();
  for (const s of sliders) $(s.id).addEventListener("input", showPlan);
  on("price-commands", "input", "plan-text", showPlan);
  on("price-storage", "input", "plan-text", showPlan);
  await showPlan();
  await newWindow();
  $("loading").textContent = "Ready.";
} catch (error) {
  $("loading").textContent = "The page could not start: " + error.message;
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  again();
  if (over) chart($("over-chart"), over);
});
new ResizeObserver(() => over && chart($("over-chart"), over)).observe($("over-chart"));
