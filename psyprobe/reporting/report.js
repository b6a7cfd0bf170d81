"use strict";
// Draws the figures of a report from the JSON in the page. Text only ever becomes text: nothing here makes HTML of it.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const MAP = ["#ffffd9", "#edf8b1", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#253494", "#081d58"];
  const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b"];
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#7a6ff0", "#44aa99"];
  const MOST_BANDS = 24, NEAR = "600px", ROWS_TO_FILTER = 15, ALONG_AXIS = 36;

  // -- small parts ------------------------------------------------------------------------------------------------
  function make(space, name, attributes, children) {
    const made = space ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) if (value !== undefined) made.setAttribute(key, value);
    made.append(...(children || []));
    return made;
  }
  const html = (name, attributes, ...children) => make(false, name, attributes, children);
  const svg = (name, attributes, ...children) => make(true, name, attributes, children);

  function ramp(colours, t) {
    const place = Math.min(Math.max(t, 0), 1) * (colours.length - 1), i = Math.min(Math.floor(place), colours.length - 2);
    const part = (text, k) => parseInt(text.slice(1 + 2 * k, 3 + 2 * k), 16);
    const mixed = [0, 1, 2].map((k) => Math.round(part(colours[i], k) + (place - i) * (part(colours[i + 1], k) - part(colours[i], k))));
    return `rgb(${mixed})`;
  }
  const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  function told(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size === 0 || (size >= 1e-3 && size < 1e5)) return String(Number(value.toPrecision(digits)));
    const [front, power] = value.toExponential(digits - 1).split("e");
    const raised = [...String(Number(power))].map((each) => SUPERSCRIPT[each]).join("");
    return Number(front) === 1 ? `10${raised}` : `${Number(front)} × 10${raised}`;
  }
  const dark = () => {
    const chosen = document.documentElement.dataset.scheme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  function colourOf(line) {
    if (line.shade !== undefined) return ramp(VIRIDIS, dark() ? 0.3 + 0.7 * line.shade : 0.9 * line.shade);
    return line.style.startsWith("people") ? "var(--ink)" : COLOURS[(line.colour || 0) % COLOURS.length];
  }

  // -- axes -------------------------------------------------------------------------------------------------------
  // A level of 0 has a place of its own on a logarithmic axis.
  const placed = (axis, v) => (v === 0 && axis.zero ? axis.zero : v);
  function scale(axis, low, high, from, to) {
    const f = axis.log ? (v) => Math.log10(placed(axis, v)) : (v) => v, back = axis.log ? (v) => 10 ** v : (v) => v;
    let [a, b] = [f(low), f(high)];
    if (!(b > a)) [a, b] = [a - 0.5, b + 0.5];
    const at = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
    let ticks = [];
    if (axis.names.length) ticks = axis.names.map((name, i) => [i, name]);
    else if (axis.log) {
      const digits = b - a > 2.5 ? [1] : b - a > 0.6 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 8];
      // Beside an axis is no room for a number times a power of ten.
      for (let e = Math.floor(a); e <= Math.ceil(b); e++) for (const d of digits) if (!told(d * 10 ** e).includes("×")) ticks.push(d * 10 ** e);
    } else {
      const rough = (b - a) / 5, unit = 10 ** Math.floor(Math.log10(rough));
      const step = unit * [1, 2, 2.5, 5, 10].find((m) => m * unit >= rough - 1e-12);
      for (let v = Math.ceil(a / step - 1e-9) * step; v <= b + step * 1e-6; v += step) ticks.push(Math.abs(v) < step * 1e-6 ? 0 : v);
    }
    if (axis.zero) ticks = [[0, "0"], ...ticks.filter((v) => v > 1.5 * axis.zero)];
    ticks = ticks.map((each) => (Array.isArray(each) ? each : [each, told(back(f(each)))]));
    ticks = ticks.filter(([v]) => f(v) >= a - 1e-6 * (b - a) && f(v) <= b + 1e-6 * (b - a));
    while (ticks.length > 8 && !axis.names.length) ticks = ticks.filter((_, i) => i % 2 === 0);
    return { at, ticks };
  }
  function ends(axis, values, margin) {
    if (axis.span) return axis.span;
    const known = values.filter((v) => v !== null && Number.isFinite(v)).map((v) => placed(axis, v)).filter((v) => !axis.log || v > 0);
    if (!known.length) return [axis.log ? 0.1 : 0, 1];
    const low = Math.min(...known), high = Math.max(...known);
    if (!margin) return [low, high];
    if (axis.names.length) return [Math.round(low) - 0.5, Math.round(high) + 0.5];
    return axis.log ? [low / margin, high * margin] : [low - (high - low) * (margin - 1) * 0.2, high + (high - low) * (margin - 1) * 0.2];
  }
  // A label that is longer than its axis stands in two lines.
  function folded(label) {
    const spaces = [...label.matchAll(/ /g)].map((each) => each.index);
    if (label.length <= ALONG_AXIS || !spaces.length) return [label];
    const cut = spaces.reduce((best, at) => (Math.abs(at - label.length / 2) < Math.abs(best - label.length / 2) ? at : best));
    return [label.slice(0, cut), label.slice(cut + 1)];
  }
  function frame(figure, box, x, y) {
    const drawn = svg("g", { class: "axes" });
    for (const [v, text] of x.ticks) {
      drawn.append(svg("line", { x1: x.at(v), x2: x.at(v), y1: box.bottom, y2: box.bottom + 4 }));
      const slanted = figure.x.names.length > 3;
      const at = slanted ? { transform: `translate(${x.at(v) + 3},${box.bottom + 13}) rotate(-35)`, "text-anchor": "end" } : { x: x.at(v), y: box.bottom + 16, "text-anchor": "middle" };
      drawn.append(svg("text", at, text));
    }
    for (const [v, text] of y.ticks) {
      drawn.append(svg("line", { x1: box.left - 4, x2: box.left, y1: y.at(v), y2: y.at(v) }));
      drawn.append(svg("text", { x: box.left - 7, y: y.at(v) + 3.5, "text-anchor": "end" }, text));
    }
    drawn.append(svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "frame" }));
    drawn.append(svg("text", { x: (box.left + box.right) / 2, y: box.height - 5, "text-anchor": "middle", class: "label" }, figure.x.label));
    folded(figure.y.label).forEach((line, i) => drawn.append(svg("text", { transform: `translate(${12 + 13 * i},${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "label" }, line)));
    return drawn;
  }

  // -- contours ---------------------------------------------------------------------------------------------------
  function decoded(view) {
    if (view.values) return view.values;
    const bytes = Uint8Array.from(atob(view.codes), (c) => c.charCodeAt(0));
    const codes = new DataView(bytes.buffer), span = view.high - view.low;
    view.values = Array.from({ length: bytes.length / 2 }, (_, i) => {
      const code = codes.getUint16(2 * i, true);
      return code === 0 ? NaN : code === 1 ? 0 : 10 ** (view.low + (span * (code - 2)) / 65533);
    });
    return view.values;
  }
  function bands(views, logarithmic) {
    const all = views.flatMap((view) => decoded(view).filter((v) => v > Math.max(view.floor, 0)));
    if (!all.length) return [0, 1];
    const low = all.reduce((a, b) => Math.min(a, b)), high = all.reduce((a, b) => Math.max(a, b));
    if (!logarithmic) {
      const unit = 10 ** Math.floor(Math.log10(high / MOST_BANDS));
      const step = unit * [1, 2, 2.5, 5, 10].find((m) => high / (m * unit) <= MOST_BANDS);
      return Array.from({ length: Math.ceil(high / step - 1e-9) + 1 }, (_, i) => i * step);
    }
    const top = Math.log10(high), bottom = Math.max(Math.log10(low), top - 10);
    const each = [10, 5, 4, 2, 1].find((n) => n * (top - bottom) <= MOST_BANDS) || 1;
    const first = Math.floor(each * bottom + 1e-9), last = Math.max(Math.ceil(each * top - 1e-9), first + 1);
    return Array.from({ length: last - first + 1 }, (_, i) => 10 ** ((first + i) / each));
  }
  // From which edge to which the border of a region runs through a cell, by which corners are inside (on its left).
  const RUNS = { 1: [[0, 3]], 2: [[1, 0]], 3: [[1, 3]], 4: [[2, 1]], 5: [[0, 3], [2, 1]], 6: [[2, 0]], 7: [[2, 3]], 8: [[3, 2]], 9: [[0, 2]], 10: [[1, 0], [3, 2]], 11: [[1, 2]], 12: [[3, 1]], 13: [[0, 1]], 14: [[3, 0]] };
  function region(values, px, py, level, f) {
    const nx = px.length, ny = py.length, width = nx + 2, wanted = f(level);
    const value = (i, j) => {
      if (i < 1 || j < 1 || i > nx || j > ny) return -Infinity;
      const v = f(values[(i - 1) * ny + j - 1]);
      return Number.isNaN(v) ? -Infinity : v;
    };
    const at = (i, j) => [px[Math.min(Math.max(i - 1, 0), nx - 1)], py[Math.min(Math.max(j - 1, 0), ny - 1)]];
    const starts = new Map();
    for (let i = 0; i <= nx; i++) for (let j = 0; j <= ny; j++) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const inside = corners.reduce((sum, [a, b], k) => sum + (value(a, b) >= wanted ? 1 << k : 0), 0);
      const key = [2 * (j * width + i), 2 * (j * width + i + 1) + 1, 2 * ((j + 1) * width + i), 2 * (j * width + i) + 1];
      for (const [from, to] of RUNS[inside] || []) starts.set(key[from], [key[to], corners[from], corners[(from + 1) % 4]]);
    }
    let path = "";
    while (starts.size) {
      const [first] = starts.keys();
      let key = first, ring = [];
      while (starts.has(key)) {
        const [next, a, b] = starts.get(key);
        starts.delete(key);
        const va = value(...a), vb = value(...b), t = va === -Infinity ? 1 : vb === -Infinity ? 0 : (wanted - va) / (vb - va);
        const [p, q] = [at(...a), at(...b)];
        ring.push(`${(p[0] + t * (q[0] - p[0])).toFixed(1)},${(p[1] + t * (q[1] - p[1])).toFixed(1)}`);
        key = next;
      }
      path += `M${ring.join("L")}Z`;
    }
    return path;
  }
  function colourBar(levels, box, label, logarithmic) {
    const drawn = svg("g", { class: "axes" }), n = levels.length - 1, x = box.right + 12, tall = (box.bottom - box.top) / n;
    for (let k = 0; k < n; k++) drawn.append(svg("rect", { x, y: box.bottom - (k + 1) * tall, width: 9, height: tall + 0.3, fill: ramp(MAP, n > 1 ? k / (n - 1) : 1) }));
    const every = Math.ceil(n / 6);
    levels.forEach((level, k) => {
      const whole = logarithmic && n > 12 ? Math.abs(Math.log10(level) - Math.round(Math.log10(level))) < 1e-6 : k % every === 0;
      if (whole) drawn.append(svg("text", { x: x + 13, y: box.bottom - k * tall + 3.5, class: "small" }, told(level)));
    });
    drawn.append(svg("text", { x: x + 9, y: box.top - 5, "text-anchor": "middle", class: "small" }, label));
    return drawn;
  }

  // -- one panel --------------------------------------------------------------------------------------------------
  const within = (at, values) => values.reduce((best, v, i) => (Math.abs(v - at) < Math.abs(values[best] - at) ? i : best), 0);
  function peopleAt(figure, x) {
    for (const line of figure.over) {
      if (line.style === "people points") {
        const i = line.x.findIndex((v) => v === x || Math.abs(v / x - 1) < 0.03);
        if (i >= 0) return line.y[i];
      } else for (let i = 1; i < line.x.length; i++) {
        const [a, b] = [line.x[i - 1], line.x[i]];
        if (x < a * (1 - 1e-4) || x > b * (1 + 1e-4) || !line.y[i] || !line.y[i - 1]) continue;
        const f = figure.x.log ? (v) => Math.log(placed(figure.x, v)) : (v) => v, t = Math.min(Math.max((f(x) - f(a)) / (f(b) - f(a)), 0), 1);
        return Math.exp(Math.log(line.y[i - 1]) + t * (Math.log(line.y[i]) - Math.log(line.y[i - 1])));
      }
    }
    return null;
  }
  const named = (axis, value) => axis.names.length ? axis.names[Math.round(value)] : `${axis.label} ${told(value)}`;
  const upward = (axis, value) => axis.inverse ? `${axis.inverse} ${told(1 / value)} (sensitivity ${told(value)})` : named(axis, value);

  // A data set of people has one mark wherever it is drawn.
  const PLUS = "M-1.3,-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z";
  const MARKS = [["", 0], ["M-3,-3h6v6h-6z", 0], ["M-3,-3h6v6h-6z", 45], ["M0,-4L3.8,3H-3.8z", 0], ["M0,-4L3.8,3H-3.8z", 180], [PLUS, 0], [PLUS, 45], ["M0,-4L3.8,3H-3.8z", 90], ["M0,-4L3.8,3H-3.8z", 270]];
  const marks = new Map();
  function mark(line, x, y, r) {
    const set = line.name.split(",")[0], look = { fill: colourOf(line), class: "point" };
    if (line.style === "people points" && !marks.has(set)) marks.set(set, MARKS[marks.size % MARKS.length]);
    const [d, turn] = (line.style === "people points" && marks.get(set)) || MARKS[0];
    return d ? svg("path", { d, transform: `translate(${x},${y}) rotate(${turn}) scale(${r / 3.2})`, ...look }) : svg("circle", { cx: x, cy: y, r, ...look });
  }

  function drawLines(drawn, lines, x, y, box) {
    const clip = `clip${Math.random().toString(36).slice(2)}`;
    drawn.append(svg("clipPath", { id: clip }, svg("rect", { x: box.left - 6, y: box.top - 6, width: box.right - box.left + 12, height: box.bottom - box.top + 12 })));
    for (const [l, line] of lines.entries()) {
      const colour = colourOf(line), group = svg("g", { "clip-path": `url(#${clip})`, class: line.style.replace(" ", "-"), "data-line": l });
      const known = line.x.map((v, i) => (line.y[i] === null || (y.log && line.y[i] <= 0) ? null : [x.at(v), y.at(line.y[i]), i]));
      if (line.low) for (const p of known) if (p && line.low[p[2]] !== null && line.high[p[2]] !== null) {
        const [a, b] = [line.low[p[2]], line.high[p[2]]].map((v) => Math.min(Math.max(y.at(v), box.top - 6), box.bottom + 6));
        group.append(svg("path", { d: `M${p[0]},${a}V${b}M${p[0] - 3},${a}h6M${p[0] - 3},${b}h6`, stroke: colour, "stroke-width": 1, fill: "none", class: "ends" }));
      }
      if (!line.style.endsWith("points")) {
        let d = "", pen = false;
        for (const p of known) { if (p) d += `${pen ? "L" : "M"}${p[0].toFixed(1)},${p[1].toFixed(1)}`; pen = Boolean(p); }
        if (line.style === "people") group.append(svg("path", { d, fill: "none", class: "halo" }));
        group.append(svg("path", { d, fill: "none", stroke: colour, "stroke-width": 1.7, ...(line.style === "people" ? { "stroke-dasharray": "5 3" } : {}) }));
      }
      const alone = known.filter((p, i) => p && !known[i - 1] && !known[i + 1]).length;
      if (line.style.endsWith("points") || line.low || line.behind || alone) for (const p of known) if (p) group.append(mark(line, p[0], p[1], 3.2));
      drawn.append(group);
    }
  }

  class Panel {
    constructor(owner, panel) {
      this.owner = owner;
      this.data = panel;
      const names = owner.data.x.names.length, slanted = names > 3;
      const longest = Math.max(0, ...owner.data.x.names.map((name) => name.length));
      this.wide = Math.max(360, 66 + 17 * names);
      this.box = { left: 43 + 13 * folded(owner.data.y.label).length, top: 18, bottom: 212, height: (slanted ? 230 + Math.min(90, 3.9 * longest) : 234) + (owner.data.x.label ? 18 : 0) };
      this.picture = svg("svg", { tabindex: "0", role: "img" });
      this.said = html("output", { class: "said", "aria-live": "polite" }, "\u00a0");
      // What the first panel names, others mostly share: it stands under all of them.
      this.legend = owner.panels.length ? html("ul", { class: "legend" }) : owner.legend;
      this.node = html("figure", { class: "panel" }, this.picture, this.said, ...(owner.panels.length ? [this.legend] : []));
      if (panel.title) this.node.prepend(html("figcaption", {}, panel.title));
      this.picture.addEventListener("pointermove", (event) => this.point(event));
      this.picture.addEventListener("pointerleave", () => this.owner.mark(this, null));
      this.picture.addEventListener("click", () => this.open());
      this.picture.addEventListener("keydown", (event) => this.key(event));
      this.picture.addEventListener("blur", () => this.owner.mark(this, null));
      this.waiting = true;
    }
    get option() {
      return this.data.views[this.owner.option] ? this.owner.option : Object.keys(this.data.views)[0];
    }
    get view() {
      const layers = this.data.views[this.option];
      return layers[this.owner.layer] || Object.values(layers)[0];
    }
    get label() {
      return (this.owner.data.options.find(([key]) => key === this.option) || ["", "", ""])[2];
    }
    draw() {
      this.waiting = false;
      const figure = this.owner.data, box = this.box, view = this.view, grid = !Array.isArray(view);
      box.right = grid ? 290 : this.wide - 14;
      box.width = grid ? 348 : this.wide;
      this.picture.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
      this.picture.setAttribute("aria-label", `${figure.title}${this.data.title ? `, ${this.data.title}` : ""}: ${this.label} ${figure.y.label} over ${figure.x.label}. Arrows read it${figure.behind.length ? ", Enter opens a point" : ""}.`);
      this.picture.replaceChildren();
      this.legend.replaceChildren();
      this.ring = svg("g", { class: "ring", visibility: "hidden" }, svg("circle", { r: 6.5, class: "outer" }), svg("circle", { r: 5 }));
      grid ? this.drawGrid(figure, view) : this.drawCurves(figure, view);
      this.picture.append(this.ring);
      this.show(null);
    }
    drawGrid(figure, view) {
      const [xs, ys] = figure.grids[view.at], box = this.box, values = decoded(view);
      const x = scale(figure.x, ...ends(figure.x, xs), box.left, box.right), y = scale(figure.y, ...ends(figure.y, ys), box.bottom, box.top);
      const px = xs.map(x.at), py = ys.map(y.at), logarithmic = this.owner.levels === "log";
      this.px = px;
      this.py = py;
      const levels = this.owner.common ? this.owner.commonLevels(this.label) : bands([view], logarithmic);
      const n = levels.length - 1, floor = Math.max(view.floor, 0);
      const f = logarithmic ? (v) => (v > floor ? Math.log10(v) : v >= 0 ? -Infinity : NaN) : (v) => v;
      this.picture.append(svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "blank" }));
      const first = logarithmic && !this.owner.common ? 1e-300 : levels[0];
      levels.slice(0, n).forEach((level, k) => {
        const d = region(values, px, py, k ? level : first, f);
        if (d) this.picture.append(svg("path", { d, fill: ramp(MAP, n > 1 ? k / (n - 1) : 1), "fill-rule": "evenodd", class: "band" }));
      });
      drawLines(this.picture, figure.over.map((line) => ({ ...line, contour: true })), x, y, box);
      for (const path of this.picture.querySelectorAll(".people path, .people-points .point")) path.classList.add("on-map");
      this.picture.append(frame(figure, box, x, y), colourBar(levels, box, this.short(), logarithmic));
      // What stands on every panel is named once.
      if (this.owner.panels[0] === this) this.keys(figure.over);
    }
    short() {
      return this.label.replace(/ \(.*/, "").replace("Angular distance ", "");
    }
    drawCurves(figure, lines) {
      const box = this.box, every = [...figure.over, ...lines];
      const pick = (name) => every.flatMap((line) => line[name] || []);
      const asked = every.flatMap((line) => line.x.filter((_, i) => line.y[i] !== null));
      const x = scale(figure.x, ...ends(figure.x, asked, 1.25), box.left, box.right);
      const y = scale(figure.y, ...ends(figure.y, [...pick("y"), ...(figure.y.log ? [] : [...pick("low"), ...pick("high")])], 1.4), box.bottom, box.top);
      this.picture.append(frame(figure, box, x, y));
      drawLines(this.picture, every, x, y, box);
      // Of more lines than there are colours one is seen at a time, and the ends of its intervals.
      this.picture.classList.toggle("crowded", lines.length > COLOURS.length);
      this.points = every.flatMap((line, l) => line.x.map((v, i) => ({ l, i, line, x: x.at(v), y: line.y[i] === null ? NaN : y.at(line.y[i]) }))).filter((p) => Number.isFinite(p.y));
      this.keys(every);
    }
    keys(lines) {
      const shaded = lines.filter((line) => line.shade !== undefined && !line.style.startsWith("people"));
      const shown = shaded.length ? shaded : lines;
      // What another panel has named is not named again.
      const names = shown.map((line) => line.name).join("\n"), first = this.owner.panels[0];
      if (first !== this && first.waiting) first.draw();
      if (first !== this && first.named === names) return;
      this.named = names;
      for (const line of shown.filter((each, i) => shown.findIndex((other) => other.name === each.name) === i)) {
        const key = svg("svg", { viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true" });
        if (!line.style.endsWith("points")) key.append(svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: colourOf(line), "stroke-width": 2, ...(line.style === "people" ? { "stroke-dasharray": "5 3" } : {}) }));
        if (line.style.endsWith("points") || line.behind) key.append(mark(line, 11, 4, 2.8));
        const item = html("li", {}, key, line.name);
        item.addEventListener("pointerenter", () => this.lift(lines.indexOf(line)));
        item.addEventListener("pointerleave", () => this.lift(null));
        this.legend.append(item);
      }
      if (shaded.length) this.legend.append(html("li", {}, "dashed: human"));
    }
    // -- reading ----
    point(event) {
      if (this.waiting) return;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.picture.getScreenCTM().inverse());
      if (!Array.isArray(this.view)) return this.owner.mark(this, [within(at.x, this.px), within(at.y, this.py)]);
      if (!this.points.length) return;
      const near = this.points.reduce((best, p) => (Math.hypot(p.x - at.x, p.y - at.y) < Math.hypot(best.x - at.x, best.y - at.y) ? p : best));
      this.owner.mark(this, [near.l, near.i]);
    }
    key(event) {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); return this.open(); }
      if (event.key === "Escape") return this.owner.mark(this, null);
      if (!step || this.waiting) return;
      event.preventDefault();
      if (!Array.isArray(this.view)) {
        const [i, j] = this.place || [Math.floor(this.px.length / 2) - step[0], Math.floor(this.py.length / 2) - step[1]];
        const held = (v, n) => Math.min(Math.max(v, 0), n - 1);
        return this.owner.mark(this, [held(i + step[0], this.px.length), held(j + step[1], this.py.length)]);
      }
      if (!this.points.length) return;
      const now = this.place ? this.points.findIndex((p) => p.l === this.place[0] && p.i === this.place[1]) : -1;
      let next = now < 0 ? 0 : now;
      if (now >= 0 && step[0]) next = Math.min(Math.max(now + step[0], 0), this.points.length - 1);
      if (now >= 0 && step[1]) {
        const lines = [...new Set(this.points.map((p) => p.l))], line = lines[Math.min(Math.max(lines.indexOf(this.points[now].l) - step[1], 0), lines.length - 1)];
        const own = this.points.map((p, k) => [p, k]).filter(([p]) => p.l === line);
        next = own[within(this.points[now].x, own.map(([p]) => p.x))][1];
      }
      this.owner.mark(this, [this.points[next].l, this.points[next].i]);
    }
    lift(l) {
      for (const group of this.picture.querySelectorAll(".crowded [data-line]")) {
        group.classList.toggle("lifted", Number(group.dataset.line) === l);
        group.classList.toggle("faint", l !== null && Number(group.dataset.line) !== l);
      }
    }
    show(place) {
      if (this.waiting) return;
      this.place = place;
      this.lift(place && Array.isArray(this.view) ? place[0] : null);
      const figure = this.owner.data, view = this.view;
      this.ring.setAttribute("visibility", place ? "visible" : "hidden");
      if (!place) return void (this.said.textContent = "\u00a0");
      let x, y, text;
      if (!Array.isArray(view)) {
        const [i, j] = place, [xs, ys] = figure.grids[view.at];
        if (i >= xs.length || j >= ys.length) return;
        [x, y] = [this.px[i], this.py[j]];
        const value = decoded(view)[i * ys.length + j], people = peopleAt(figure, xs[i]);
        const response = Number.isNaN(value) ? "undefined" : told(value) + (value <= view.floor ? ", not above the noise floor" : "");
        const human = people === null ? "" : `; human threshold ${told(figure.y.inverse ? 1 / people : people)}`;
        text = `${named(figure.x, xs[i])}, ${upward(figure.y, ys[j])}: ${this.short()} ${response}${human}`;
      } else {
        const p = this.points.find((each) => each.l === place[0] && each.i === place[1]);
        if (!p) return void this.ring.setAttribute("visibility", "hidden");
        [x, y] = [p.x, p.y];
        const { line, i } = p, interval = line.low && line.low[i] !== null ? ` [${told(line.low[i])}, ${told(line.high[i])}]` : "";
        const note = line.notes && line.notes[i] ? `; ${line.notes[i]}` : "", open = line.behind ? "; click or Enter opens it" : "";
        text = `${line.name}: ${named(figure.x, line.x[i])}, ${figure.y.inverse ? upward(figure.y, line.y[i]) : `${figure.y.names.length ? "" : figure.y.label + " "}${told(line.y[i])}`}${interval}${note}${open}`;
      }
      this.ring.setAttribute("transform", `translate(${x},${y})`);
      this.said.textContent = text;
    }
    open() {
      if (!this.place || !Array.isArray(this.view)) return;
      const p = this.points.find((each) => each.l === this.place[0] && each.i === this.place[1]);
      if (p && p.line.behind) this.owner.reveal(p.line.behind[p.i]);
    }
    table() {
      const figure = this.owner.data, view = this.view, head = html("thead"), body = html("tbody");
      const row = (name, cells) => html("tr", {}, ...cells.map((cell, k) => html(name === "th" || k === 0 ? "th" : "td", { scope: name === "th" ? "col" : k === 0 ? "row" : undefined }, cell)));
      if (!Array.isArray(view)) {
        const [xs, ys] = figure.grids[view.at], values = decoded(view);
        head.append(row("th", [`${figure.y.label} \\ ${figure.x.label}`, ...xs.map((v) => told(v))]));
        for (let j = ys.length - 1; j >= 0; j--) body.append(row("td", [told(ys[j]), ...xs.map((_, i) => told(values[i * ys.length + j]))]));
      } else {
        head.append(row("th", ["line", figure.x.label, figure.y.label, "low", "high", "note"]));
        for (const line of [...figure.over, ...view]) line.x.forEach((v, i) => body.append(row("td", [line.name, figure.x.names[v] || told(v), told(line.y[i]), told(line.low && line.low[i]), told(line.high && line.high[i]), (line.notes && line.notes[i]) || ""])));
      }
      return html("div", { class: "scroll", tabindex: "0" }, html("table", {}, html("caption", {}, [this.data.title, this.label].filter(Boolean).join(": ")), head, body));
    }
  }

  // -- a figure with its panels and controls ----------------------------------------------------------------------
  class Figure {
    constructor(place, data) {
      this.data = data;
      this.option = data.options[0][0];
      this.layer = "";
      this.levels = "log";
      this.linked = this.common = true;
      this.legend = html("ul", { class: "legend" });
      this.panels = [];
      for (const panel of data.panels) this.panels.push(new Panel(this, panel));
      const grid = data.panels.some((panel) => Object.values(panel.views).some((layers) => Object.values(layers).some((view) => !Array.isArray(view))));
      const layers = [...new Set(data.panels.flatMap((panel) => Object.values(panel.views).flatMap(Object.keys)))].filter(Boolean);
      const bar = html("div", { class: "bar" });
      if (data.options.length > 1) bar.append(this.select(data.choice, data.options.map(([key, name]) => [key, name]), (value) => (this.option = value)));
      if (layers.length > 1) bar.append(this.select("layer", layers.map((each) => [each, each]), (value) => (this.layer = value)));
      if (grid) bar.append(this.select("levels", [["log", "logarithmic"], ["linear", "linear"]], (value) => (this.levels = value)));
      if (grid && data.panels.length > 1) bar.append(this.check("common levels", true, (value) => (this.common = value)));
      if (data.panels.length > 1) bar.append(this.check("link observers", true, (value) => (this.linked = value)));
      if (data.panels.length >= ROWS_TO_FILTER) bar.append(this.filter());
      this.inner = html("div", { class: `panels ${["", "", "two", "three"][data.panels.length] || ""}` }, ...this.panels.map((panel) => panel.node));
      if (data.panels.length === 1) place.classList.add(data.x.names.length > 12 ? "broad" : "single");
      this.behind = html("div", { class: "behind" });
      this.tables = html("details", { class: "tables" }, html("summary", {}, "Table of this figure"));
      this.tables.addEventListener("toggle", () => this.fill());
      place.append(...(bar.childNodes.length ? [bar] : []), this.inner, this.legend, this.behind, this.tables);
      this.watch();
    }
    select(name, options, take) {
      const made = html("select", { "aria-label": name }, ...options.map(([value, text]) => html("option", { value }, text)));
      made.addEventListener("change", () => { take(made.value); this.redraw(); });
      return html("label", {}, `${name} `, made);
    }
    filter() {
      const box = html("input", { type: "search", placeholder: "observers with …", "aria-label": "show observers with this text" });
      box.addEventListener("input", () => this.panels.forEach((panel) => (panel.node.hidden = !panel.data.title.toLowerCase().includes(box.value.toLowerCase()))));
      return box;
    }
    check(name, on, take) {
      const made = html("input", { type: "checkbox" });
      made.checked = on;
      made.addEventListener("change", () => { take(made.checked); this.redraw(); });
      return html("label", {}, made, ` ${name}`);
    }
    watch() {
      const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
        const panel = this.panels.find((each) => each.node === entry.target);
        if (entry.isIntersecting && panel.waiting) panel.draw();
      }), { rootMargin: NEAR });
      for (const panel of this.panels) {
        panel.picture.setAttribute("viewBox", `0 0 ${panel.wide} ${panel.box.height}`);
        seen.observe(panel.node);
      }
    }
    commonLevels(label) {
      const key = `${label} ${this.levels} ${this.layer}`;
      if (this.kept !== key) {
        this.kept = key;
        this.keptLevels = bands(this.panels.filter((panel) => panel.label === label).map((panel) => panel.view), this.levels === "log");
      }
      return this.keptLevels;
    }
    redraw(all = false) {
      for (const panel of this.panels) if (all || !panel.waiting) panel.draw();
      this.fill();
    }
    mark(panel, place) {
      for (const each of this.linked ? this.panels : [panel]) each.show(place);
    }
    reveal(index) {
      if (index === undefined) return;
      const close = html("button", { type: "button" }, "close");
      close.addEventListener("click", () => this.behind.replaceChildren());
      const inner = html("div", { class: "drawn" }, html("h4", {}, this.data.behind[index].title));
      this.behind.replaceChildren(close, inner);
      this.inside = new Figure(inner, this.data.behind[index]);
    }
    fill() {
      while (this.tables.childNodes.length > 1) this.tables.lastChild.remove();
      if (this.tables.open) this.tables.append(...this.panels.map((panel) => panel.table()));
    }
  }
  const drawn = [...document.querySelectorAll(".drawn[data-figure]")].map((place) => new Figure(place, figures[Number(place.dataset.figure)]));
  const redraw = (all) => drawn.forEach((figure) => { figure.redraw(all); if (figure.inside) figure.inside.redraw(all); });

  // -- tables: sorted by a click, long ones filtered ----------------------------------------------------------------
  const collator = new Intl.Collator();
  function sort(table, column, button) {
    const body = table.tBodies[0], heading = button.closest("th"), up = heading.getAttribute("aria-sort") !== "ascending";
    const value = (row) => row.cells[column].dataset.value !== undefined ? row.cells[column].dataset.value : row.cells[column].textContent.trim();
    const order = ([one], [other]) => {
      if (!one || !other) return Number(!one) - Number(!other);
      const [m, n] = [parseFloat(one), parseFloat(other)];
      const compared = Number.isNaN(m) || Number.isNaN(n) ? collator.compare(one, other) : m - n;
      return up ? compared : -compared;
    };
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    // Values are read once a row, and one collator compares them: both are slow by the pair.
    body.append(...[...body.rows].map((row) => [value(row), row]).sort(order).map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = html("button", { type: "button", class: "sort" }, ...cell.childNodes);
      button.addEventListener("click", () => sort(table, column, button));
      cell.replaceChildren(button);
    });
    if (table.tBodies[0].rows.length < ROWS_TO_FILTER) continue;
    const box = html("input", { type: "search", placeholder: "rows with …", "aria-label": "show rows with this text" });
    const choices = [...table.tHead.rows[0].cells].flatMap((cell, column) => {
      const texts = [...new Set([...table.tBodies[0].rows].map((row) => row.cells[column].textContent))].filter(Boolean).sort();
      if (!cell.dataset.filter || texts.length < 2) return [];
      const list = html("select", { "aria-label": `show ${cell.dataset.filter}` }, html("option", { value: "" }, `any ${cell.dataset.filter}`), ...texts.map((text) => html("option", {}, text)));
      return [{ column, list }];
    });
    const show = () => {
      for (const row of table.tBodies[0].rows) {
        const chosen = choices.every(({ column, list }) => !list.value || row.cells[column].textContent === list.value || row.classList.contains("baseline"));
        row.hidden = !chosen || !row.textContent.toLowerCase().includes(box.value.toLowerCase());
      }
    };
    for (const { list } of choices) list.addEventListener("change", show);
    box.addEventListener("input", show);
    table.parentNode.before(html("p", { class: "filter" }, box, ...choices.map(({ list }) => list)));
  }

  // -- light and dark, print ----------------------------------------------------------------------------------------
  const button = html("button", { type: "button" });
  const say = () => (button.textContent = dark() ? "light page" : "dark page");
  button.addEventListener("click", () => {
    document.documentElement.dataset.scheme = dark() ? "light" : "dark";
    say();
    redraw();
  });
  say();
  document.getElementById("page-bar").append(button);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { say(); redraw(); });
  addEventListener("beforeprint", () => redraw(true));
  document.documentElement.dataset.drawn = "yes";
})();
