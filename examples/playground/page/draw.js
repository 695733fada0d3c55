// Draws bits on a canvas and lines in an SVG, in the colours of page.css.

const columns = 53; // the bits of a word, which is a row

const colours = () => {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue("--" + name).trim();
};

const pictures = new Map(); // what each canvas shows, to draw it again

// bits shows a picture: bits is a text of 0 and 1, item the cells of an item.
// With words, the item's words are marked and numbered.
export function bits(canvas, picture) {
  if (!pictures.has(canvas)) resized.observe(canvas);
  pictures.set(canvas, picture);
  draw(canvas, picture);
}

function draw(canvas, { bits, item = [], words = false, gutter = true }) {
  const colour = colours(), scale = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
  if (width === 0) return;
  canvas.width = width;
  canvas.height = height;
  const c = canvas.getContext("2d");
  const rows = bits.length / columns;
  const across = width / (columns + (gutter ? 3 : 0)), down = height / rows;
  const gap = Math.max(1, Math.round(Math.min(across, down) * 0.16));
  const x = (i) => Math.round(i * across), y = (i) => Math.round(i * down);
  const mine = new Set(item), marked = new Set();
  if (words) {
    for (const cell of item) marked.add(Math.floor(cell / columns));
    c.font = `600 ${11 * scale}px ${colour("sans")}`;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const row of marked) {
      c.fillStyle = colour("band");
      c.fillRect(0, y(row) - gap, x(columns), y(row + 1) - y(row) + gap);
      c.fillStyle = colour("mine");
      const half = 7 * scale; // numbers at the edge stay inside
      c.fillText(row, width, Math.min(Math.max((y(row) + y(row + 1)) / 2, half), height - half));
    }
  }
  const empty = colour("cell"), set = colour("set"), own = colour("mine"), band = colour("band");
  for (let i = 0; i < bits.length; i++) {
    const row = Math.floor(i / columns), column = i % columns;
    const left = x(column), top = y(row), w = x(column + 1) - left - gap, h = y(row + 1) - top - gap;
    if (mine.has(i)) {
      c.fillStyle = own;
      c.fillRect(left - gap, top - gap, w + 2 * gap, h + 2 * gap);
      if (bits[i] === "1") continue;
      c.fillStyle = band;
    } else {
      if (bits[i] === "0" && marked.has(row)) continue; // the band shows
      c.fillStyle = bits[i] === "1" ? set : empty;
    }
    c.fillRect(left, top, w, h);
  }
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) if (pictures.has(target)) draw(target, pictures.get(target));
});

// again draws all canvases in new colours, and forgets those that are gone.
export function again() {
  for (const [canvas, picture] of pictures) {
    if (canvas.isConnected) draw(canvas, picture);
    else {
      resized.unobserve(canvas);
      pictures.delete(canvas);
    }
  }
}

const svg = (name, attributes, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
};

// chart draws lines and dots into a box, as wide as it is.
export function chart(box, { lines, most, capacity }) {
  const colour = colours();
  const width = box.clientWidth, height = box.clientHeight;
  const left = 42, right = 62, top = 22, bottom = 40;
  const highest = 10 * Math.ceil(Math.max(...lines.flatMap((l) => l.formula.map((p) => p.y))) / 10);
  const x = (v) => left + (v / most) * (width - left - right);
  const y = (v) => height - bottom - (v / highest) * (height - top - bottom);
  const root = svg("svg", { role: "img", "aria-label": "False positives by the number of items; the numbers are in the table below" });
  const line = (x1, y1, x2, y2, more = {}) =>
    root.append(svg("line", { x1, y1, x2, y2, stroke: colour("line"), ...more }));
  for (let v = 0; v <= highest; v += 10) {
    line(left, y(v), width - right, y(v));
    root.append(svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, v + "%"));
  }
  for (let v = 0; v <= most; v++) {
    line(x(v), y(0), x(v), y(0) + 5);
    root.append(svg("text", { x: x(v), y: y(0) + 19, "text-anchor": v === most ? "end" : "middle" }, v));
  }
  line(x(1), y(0), x(1), y(highest), { "stroke-dasharray": "3 4", stroke: colour("soft") });
  root.append(svg("text", { x: x(1), y: top - 8, "text-anchor": "middle" }, `capacity: ${capacity}`));
  root.append(svg("text", { x: left, y: height - 3 }, "items, in capacities"));
  lines.forEach(({ name, formula, measured }, i) => {
    const stroke = colour(i === 0 ? "mine" : "blue");
    const points = formula.map((p) => `${x(p.x)},${y(p.y)}`).join(" ");
    root.append(svg("polyline", { points, fill: "none", stroke, "stroke-width": 2 }));
    const end = formula[formula.length - 1];
    const label = svg("text", { x: x(end.x) + 8, y: y(end.y) + 4 }, name);
    label.style.fill = stroke;
    root.append(label);
    for (const p of measured) {
      root.append(svg("circle", { cx: x(p.x), cy: y(p.y), r: 4, fill: stroke, stroke: colour("paper"), "stroke-width": 1.5 }));
    }
  });
  box.replaceChildren(root);
}
