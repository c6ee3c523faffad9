// What every widget shares: DOM and SVG elements from text (never from markup),
// labelled controls bound to a model, a plot that is drawn at its real width, and the
// frame that redraws on change, on resize and on a change of language.
// Joined with a widget's own module when its class is defined, so each stays one file.
// Left out: animation, zooming, tooltips that need a mouse.

const SVG = "http://www.w3.org/2000/svg";

function element(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child instanceof Node) node.append(child);
    else if (child !== null && child !== undefined) node.append(rich(node, `${child}`));
  }
  return node;
}

// "ε_{low}" becomes ε with a subscript; everything else stays plain text
function rich(parent, text) {
  const fragment = document.createDocumentFragment();
  const svg = parent.namespaceURI === SVG;
  text.split(/_\{([^{}]*)\}/).forEach((part, i) => {
    if (!part) return;
    if (!svg) {
      fragment.append(i % 2 ? element(document.createElement("sub"), {}, [part]) : part);
      return;
    }
    const span = document.createElementNS(SVG, "tspan");
    span.textContent = part;
    if (i) span.setAttribute("dy", i % 2 ? 3 : -3);
    if (i % 2) span.setAttribute("class", "sub");
    fragment.append(span);
  });
  return fragment;
}

export const plain = (text) => `${text}`.replace(/_\{([^{}]*)\}/g, "_$1");

// JupyterLab takes the arrow keys of whatever has the focus, unless it says no itself
const KEYS = { "data-lm-suppress-shortcuts": "true" };
const FOCUSABLE = ["input", "button", "select", "textarea"];

export const h = (tag, attributes, ...children) =>
  element(document.createElement(tag), { ...(FOCUSABLE.includes(tag) && KEYS), ...attributes }, children);

export const s = (tag, attributes, ...children) =>
  element(document.createElementNS(SVG, tag), attributes, children);

// numbers, with a true minus sign
export function fmt(x, digits = 2) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "NaN";
  const text = x.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}
export function sig(x, n = 3) {
  if (!Number.isFinite(x)) return fmt(x);
  if (x === 0) return "0";
  if (Math.abs(x) >= 1e4 || Number.isInteger(x)) return count(x);
  return `${Number(x.toPrecision(n))}`.replace("-", "−");
}
export const count = (x) =>
  Number.isFinite(x)
    ? `${Math.round(x)}`.replace("-", "−").replace(/\B(?=(\d{3})+$)/g, ",")
    : fmt(x);
export const pct = (x, digits = 0) => `${fmt(100 * x, digits)}%`;

export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
export const range = (n) => Array.from({ length: n }, (_, i) => i);
export const linspace = (a, b, n) => range(n).map((i) => a + ((b - a) * i) / (n - 1));

export function ticks(a, b, wanted) {
  const raw = (b - a) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999) * power;
  const first = Math.ceil(a / step - 1e-9);
  const n = Math.floor(b / step + 1e-9) - first;
  return range(n + 1).map((i) => Number(((first + i) * step).toPrecision(12)));
}

const words = (value) => (typeof value === "string" ? value : Number.isFinite(value) ? sig(value) : "");

// a model's values, whatever they hold: out-of-range numbers are clamped, the rest
// falls back, so a tampered state can be wrong but never dangerous
function reader(model) {
  return {
    num(name, low, high, fallback) {
      const value = model.get(name);
      return Number.isFinite(value) ? clamp(value, low, high) : fallback;
    },
    int(name, low, high, fallback) {
      return Math.round(this.num(name, low, high, fallback));
    },
    pick(name, options) {
      const value = model.get(name);
      return options.includes(value) ? value : options[0];
    },
    flag: (name) => model.get(name) === true,
    list: (name) => (Array.isArray(model.get(name)) ? model.get(name) : []),
    text: (name, limit = 100000) => words(model.get(name)).slice(0, limit),
    data(name) {
      const value = model.get(name);
      return value && typeof value === "object" && Object.keys(value).length
        ? value
        : null;
    },
  };
}

function translator(model) {
  const lang = model.get("lang") === "zh" ? "zh" : "en";
  const texts = model.get("texts") ?? {};
  const t = (key, values = {}) => {
    const text = Object.hasOwn(texts, key) ? words(texts[key]) : key;
    return text.replace(/(?<!_)\{(\w+)\}/g, (all, name) =>
      Object.hasOwn(values, name) ? values[name] : all,
    );
  };
  // a label that travels with data: {en, zh} or a plain string
  const say = (label) =>
    words(label && typeof label === "object" ? label[lang] ?? label.en : label);
  const join = (...parts) => parts.filter(Boolean).join(lang === "zh" ? "" : " ");
  return { lang, t, say, join };
}

function controls(ui, model) {
  const put = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let serial = 0;
  const group = `dw${Math.random().toString(36).slice(2, 9)}`;

  function slider(name, { label, min, max, step = 1, show = (x) => sig(x), wide }) {
    const id = `${group}-${++serial}`;
    const limits = () => [min, max, step].map((v) => (typeof v === "function" ? v() : v));
    const output = h("output", { for: id });
    const input = h("input", {
      type: "range", id, "data-name": name,
      oninput: () => put(name, Number(input.value)),
    });
    ui.syncs.push(() => {
      const [low, high, by] = limits();
      Object.assign(input, { min: low, max: high, step: by });
      const value = ui.num(name, low, high, low);
      if (Number(input.value) !== value) input.value = value;
      output.textContent = show(value);
      input.setAttribute("aria-valuetext", show(value));
    });
    const box = h("div", { class: wide ? "dw-slider dw-wide" : "dw-slider" });
    box.append(h("label", { for: id }, label), output, input);
    return box;
  }

  function options(kind, cls, label, entries, checked, toggle) {
    const box = h("div", { class: `dw-options ${cls}` });
    const name = `${group}-${++serial}`;
    for (const [value, text] of entries) {
      const input = h("input", {
        type: kind, name, "data-value": `${value}`, onchange: () => toggle(value, input.checked),
      });
      ui.syncs.push(() => (input.checked = checked(value)));
      box.append(h("label", {}, input, h("span", {}, text)));
    }
    return h("fieldset", {}, label && h("legend", {}, label), box);
  }

  const choice = (name, label, entries) =>
    options(
      "radio", "", label, entries,
      (value) => ui.pick(name, entries.map((e) => e[0])) === value,
      (value) => put(name, value),
    );
  const check = (name, text, label) =>
    options("checkbox", "dw-checks", label, [[name, text]],
      () => ui.flag(name), (_, on) => put(name, on));
  const checks = (name, label, entries) =>
    options(
      "checkbox", "dw-checks", label, entries,
      (value) => ui.list(name).includes(value),
      (value, on) => {
        const rest = ui.list(name).filter((v) => v !== value);
        put(name, on ? [...rest, value] : rest);
      },
    );

  function select(name, label, entries) {
    const id = `${group}-${++serial}`;
    const box = h("select", { id, onchange: () => put(name, box.value) });
    box.append(...entries.map(([value, text]) => h("option", { value }, plain(text))));
    ui.syncs.push(() => (box.value = ui.pick(name, entries.map((e) => e[0]))));
    return h("div", { class: "dw-field" }, h("label", { for: id }, label), box);
  }

  function field(name, label, { rows = 0, limit = 100000 } = {}) {
    const id = `${group}-${++serial}`;
    const box = h(rows ? "textarea" : "input", {
      id, rows: rows || null, type: rows ? null : "text", maxlength: limit,
      spellcheck: "false", autocomplete: "off", oninput: () => put(name, box.value),
    });
    ui.syncs.push(() => {
      const value = ui.text(name, limit);
      if (box.value !== value) box.value = value;
    });
    return h("div", { class: "dw-field" }, h("label", { for: id }, label), box);
  }

  const button = (text, onclick, attributes) =>
    h("button", { type: "button", onclick, ...attributes }, h("span", {}, text));

  return { put, slider, choice, check, checks, select, field, button };
}

export function legend(items) {
  return h("ul", { class: "dw-legend" },
    items.map(([text, cls, shape]) =>
      h("li", {}, h("i", { class: `${cls} ${shape ?? ""}`, "aria-hidden": "true" }), text)));
}

export function table(head, rows, { caption } = {}) {
  const cell = (tag, value, i) => {
    const node = value instanceof Node ? value : null;
    const body = node ?? value?.text ?? value;
    const cls = [i && !node && value?.left !== true ? "num" : "", value?.cls ?? ""].join(" ").trim();
    return h(tag, { class: cls || null, scope: tag === "th" ? (i < 0 ? "row" : "col") : null }, body);
  };
  return h("div", { class: "dw-scroll" },
    h("table", { "aria-label": caption && plain(caption) },
      h("thead", {}, h("tr", {}, head.map((v, i) => cell("th", v, i)))),
      h("tbody", {}, rows.map((row) => {
        const cells = Array.isArray(row) ? row : row.cells;
        return h("tr", { class: row.on ? "on" : null },
          cells.map((v, i) => (i ? cell("td", v, i) : h("th", { scope: "row" }, v))));
      }))));
}

// All panels are measured before anything is drawn: a width asked for between two
// drawings would lay the page out again each time.
const measured = new WeakMap();
function measure(root) {
  for (const panel of root.querySelectorAll(".dw-panel")) measured.set(panel, panel.clientWidth);
  return root.clientWidth;
}
export const widthOf = (panel) => Math.max(200, measured.get(panel.closest(".dw-panel")) || 300);

// a plot at the real width of its panel; coordinates are data units
export function plot(panel, o) {
  const width = widthOf(panel);
  const m = { top: o.ylabel ? 26 : 10, right: 14, bottom: o.xlabel ? 42 : 24, left: o.left ?? 44 };
  const height = o.height ?? 200;
  const [w, g] = [width - m.left - m.right, height - m.top - m.bottom];
  const [[x0, x1], [y0, y1]] = [o.x, o.y];
  const X = (x) => m.left + ((x - x0) / (x1 - x0 || 1)) * w;
  const Y = (y) => m.top + g - ((y - y0) / (y1 - y0 || 1)) * g;
  const svg = s("svg", { height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": plain(o.label ?? o.ylabel ?? "") });
  const add = (...args) => svg.appendChild(s(...args));
  const xfmt = o.xfmt ?? ((v) => sig(v));
  const yfmt = o.yfmt ?? ((v) => sig(v));
  const short = [...(o.yticks ?? ticks(y0, y1, g / 42))];
  for (const v of short) {
    add("line", { class: "grid", x1: m.left, x2: m.left + w, y1: Y(v), y2: Y(v) });
    add("text", { x: m.left - 7, y: Y(v) + 4, "text-anchor": "end" }, yfmt(v));
  }
  for (const v of o.xticks ?? ticks(x0, x1, w / 64)) {
    add("line", { class: "axis", x1: X(v), x2: X(v), y1: m.top + g, y2: m.top + g + 4 });
    add("text", { x: X(v), y: m.top + g + 18, "text-anchor": "middle" }, xfmt(v));
  }
  const base = y0 < 0 && y1 > 0 ? Y(0) : m.top + g;
  add("line", { class: "axis", x1: m.left, x2: m.left + w, y1: base, y2: base });
  if (o.xlabel) add("text", { x: m.left + w, y: height - 5, "text-anchor": "end" }, o.xlabel);
  if (o.ylabel) add("text", { x: 0, y: 13 }, o.ylabel);
  panel.replaceChildren(...(o.title ? [h("div", { class: "dw-cap" }, o.title)] : []), svg);

  const inside = (y) => clamp(Y(y), m.top - 4, m.top + g + 4);
  const path = (points) => {
    let d = "";
    let pen = "M";
    for (const [x, y] of points) {
      if (y === null || !Number.isFinite(y)) {
        pen = "M";
        continue;
      }
      d += `${pen}${X(x).toFixed(1)} ${inside(y).toFixed(1)}`;
      pen = "L";
    }
    return d;
  };
  return {
    svg, X, Y, width, inner: w,
    lines: (many, cls) => add("path", { class: `line ${cls}`, d: many.map(path).join("") }),
    line: (points, cls) => add("path", { class: `line ${cls}`, d: path(points) }),
    band(low, high, cls) {
      const both = [...low, ...[...high].reverse()].filter(([, y]) => Number.isFinite(y));
      if (both.length) add("path", { class: `band ${cls}`, d: `${path(both)}Z` });
    },
    dot: (x, y, cls, r = 5.5) => add("circle", { class: `dot ${cls}`, cx: X(x), cy: inside(y), r }),
    vline(x, cls, text, place = 0) {
      add("line", { class: `${cls} thin dash`, x1: X(x), x2: X(x), y1: m.top, y2: m.top + g });
      if (text) this.note(x, y1, text, cls.replace("c", "f"), "middle", 12 + 15 * place);
    },
    hline: (y, cls) => add("line", { class: `${cls} thin dash`, x1: m.left, x2: m.left + w, y1: Y(y), y2: Y(y) }),
    bar(xa, xb, ya, yb, cls) {
      const [top, low] = [Math.min(Y(ya), Y(yb)), Math.max(Y(ya), Y(yb))];
      return add("rect", { class: cls, x: X(xa), width: Math.max(1, X(xb) - X(xa)), y: top, height: Math.max(0.5, low - top), rx: 2 });
    },
    note: (x, y, text, cls = "", anchor = "start", dy = 0, dx = 0) =>
      add("text", { class: `halo ${cls}`, x: X(x) + dx, y: Y(y) + dy, "text-anchor": anchor }, text),
  };
}

// The frame. `build(ui)` returns the nodes once a language; `draw(ui)` runs on every
// change and returns the summary sentence (or {text, bad}).
export function mount({ model, el }, { build, draw }) {
  const ui = { ...reader(model), model, syncs: [] };
  Object.assign(ui, controls(ui, model));
  let root;
  let summary;
  let drawn = 0;

  function redraw() {
    for (const sync of ui.syncs) sync();
    drawn = measure(root);
    const said = draw(ui);
    const text = said?.text ?? said ?? "";
    if (summary.dataset.text !== text) {
      summary.dataset.text = text;
      summary.replaceChildren(rich(summary, text));
    }
    summary.className = said?.bad ? "dw-summary bad" : "dw-summary";
  }
  function rebuild() {
    ui.syncs.length = 0;
    Object.assign(ui, translator(model));
    root = h("section", { class: "dw", lang: ui.lang === "zh" ? "zh-CN" : "en", "aria-label": plain(ui.t("title")) });
    summary = h("p", { class: "dw-summary", role: "status", "aria-live": "polite", "aria-atomic": "true" });
    root.append(h("p", { class: "dw-title" }, ui.t("title")), h("p", { class: "dw-lead" }, ui.t("lead")), ...build(ui).filter(Boolean), summary);
    el.replaceChildren(root);
    observer?.disconnect();
    observer?.observe(root);
    redraw();
  }
  const observer = typeof ResizeObserver === "undefined" ? null
    : new ResizeObserver(() => root.clientWidth && root.clientWidth !== drawn && redraw());
  model.on("change:lang", rebuild);
  model.on("change:texts", rebuild);
  model.on("change", redraw);
  rebuild();
  return () => {
    observer?.disconnect();
    model.off("change:lang", rebuild);
    model.off("change:texts", rebuild);
    model.off("change", redraw);
  };
}
