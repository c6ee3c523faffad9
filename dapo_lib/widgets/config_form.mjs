// Fill in a run; the page writes our configuration, verl's script or TRL's. The map, the
// templates and the presets come from dapo_lib/engines as data; only the walking is
// written twice, and a test compares every character with the Python renderers.
import { clamp, fmt, h, mount, table } from "./kit.mjs";

// ── the map applied to flat values (dapo_lib/engines/table.py) ──
const isText = (x) => typeof x === "string";
const look = (known, x) => (Object.hasOwn(known, x) ? known[x] : x);
const product = (names, known) => names.reduce((all, name) => all * known[name], 1);

function derive(name, rule, known) {
  if (rule.item) return known[rule.item[0]][rule.item[1]];
  if (rule.sum) return rule.sum.reduce((all, x) => all + look(known, x), 0);
  const over = rule.over ?? [];
  const [top, below] = [product(rule.times, known), product(over, known)];
  if (rule.up) return Math.ceil(top / below);
  if (top % below) {
    const parts = [...rule.times, ...over].map((x) => `${x}=${known[x]}`).join(", ");
    throw new Error(`${name} is ${top} / ${below}, not a whole number (${parts}); choose sizes that divide`);
  }
  return top / below;
}

export function values(flat, map) {
  const known = { ...flat };
  for (const [name, rule] of map.derived) known[name] = derive(name, rule, known);
  return known;
}

function one(rule, value, known) {
  if (Array.isArray(rule)) return rule.includes(value);
  if ("given" in rule) return (value !== null) === rule.given;
  if (value === null) return false;
  return "above" in rule ? value > look(known, rule.above) : value < look(known, rule.below);
}
export const holds = (when, known) =>
  Object.entries(when ?? {}).every(([key, rule]) => one(rule, known[key], known));

export function options(known, engine, map) {
  const found = [];
  for (const row of map.rows) {
    for (const cell of row[engine]) {
      if (!holds(cell.when, known)) continue;
      let value = "is" in cell ? cell.is : known[cell.of ?? row.ours];
      if (cell.values) {
        if (!Object.hasOwn(cell.values, value)) continue;
        value = cell.values[value];
      }
      if (value !== null) found.push({ key: cell.key, ours: row.ours, value, mark: "add" in cell ? "+" : "" });
    }
  }
  return found;
}

export const limits = (known, engine, map) =>
  map.limits.filter((x) => x.engine === engine && holds(x.when, known))
    .sort((a, b) => (a.level !== "lost") - (b.level !== "lost"));

// ── values as text ──
export function number(x) {
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return `${x}`;
  if (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e15) return `${x}`;
  const [head, power] = x.toExponential().split("e");
  return `${head.includes(".") ? head : `${head}.0`}e${power}`;
}
const word = (x, yes, no, none) => (x === null ? none : x === true ? yes : x === false ? no : null);
const listed = (x, gap, text) => `[${x.map(text).join(gap)}]`;

export function pythonText(x) {
  return word(x, "True", "False", "None") ??
    (Array.isArray(x) ? listed(x, ", ", pythonText) : isText(x) ? JSON.stringify(x) : number(x));
}
export function yamlText(x) {
  const plain = word(x, "true", "false", "null");
  if (plain) return plain;
  if (Array.isArray(x)) return listed(x, ", ", yamlText);
  if (!isText(x)) return number(x);
  const safe = /^[A-Za-z][A-Za-z0-9_./-]*$/.test(x) && !/^(true|false|null|none|yes|no|on|off|y|n)$/i.test(x);
  return safe ? x : JSON.stringify(x);
}
const NUMERIC = /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
export function hydraText(x) {
  const plain = word(x, "True", "False", "null");
  if (plain) return plain;
  if (Array.isArray(x)) return listed(x, ",", hydraText);
  if (!isText(x)) return number(x);
  const bare = /^[A-Za-z0-9_./~@:+-]+$/.test(x) && !/^(true|false|null|none|inf|nan)$/i.test(x);
  if (bare && !NUMERIC.test(x)) return x;
  if (/['"\\$`\n]/.test(x)) {
    const mark = x.includes("'") && !x.includes('"') ? '"' : "'";  // as Python prints text
    throw new Error(`${mark}${x}${mark}: quotes, $, \` and line ends cannot be handed to verl`);
  }
  return `"${x}"`;
}
const shell = (x) => (/^[\w@%+=:,./-]+$/.test(x) ? x : `'${x.replaceAll("'", `'"'"'`)}'`);

// ── the three texts (dapo_lib/engines/render.py) ──
export function fill(text, holes, flags) {
  const lines = [];
  for (const line of text.split("\n")) {
    const found = /^(.*?) {2}#([?!]) (\w+)$/.exec(line);
    if (found && flags[found[3]] !== (found[2] === "?")) continue;
    lines.push(found ? found[1] : line);
  }
  return lines.join("\n").replace(/\{\{([\w.]+)\}\}/g, (_, name) => holes[name]);
}

function ours(flat) {
  const lines = [];
  let room = "";
  for (const [name, value] of Object.entries(flat)) {
    const at = name.lastIndexOf(".");
    const [above, key] = [name.slice(0, Math.max(at, 0)), name.slice(at + 1)];
    if (above && above !== room) lines.push(`${above}:`);
    room = above;
    lines.push(`${above ? "  " : ""}${key}: ${yamlText(value)}`);
  }
  return `${lines.join("\n")}\n`;
}

const args = (pairs) => pairs.map(([k, v]) => `    ${k}=${pythonText(v)},`).join("\n");
const COLUMNS = ["format", "question", "answer", "prompt", "chat", "max_prompt", "mode"];

function files(engine, flat) {
  const [train, validation] = [flat["data.train"], flat["data.validation"] ?? flat["data.train"]];
  if (engine !== "verl") return { train: pythonText(train) };
  if (flat["data.format"] === "verl") return { train: shell(hydraText(train)), validation: shell(hydraText(validation)) };
  const second = flat["data.validation"] ? "validation" : "train";
  return { train: '"$HERE/train.parquet"', validation: `"$HERE/${second}.parquet"` };
}

export function render(engine, flat, data) {
  if (engine === "ours") return ours(flat);
  const known = values(flat, data.map);
  const line = {
    verl: (o) => {
      const value = hydraText(o.value);
      return `    ${o.mark}${o.key}=${/["[]/.test(value) ? shell(value) : value} \\`;
    },
    trl: (o) => `    ${o.key}=${pythonText(o.value)},`,
  }[engine];
  const flags = Object.fromEntries(
    Object.entries(data.map.flags).map(([name, when]) => [name, holds(when, known)]));
  return fill(data.templates[engine], {
    name: flat.name,
    model: pythonText(flat["model.path"]),
    mode: pythonText(flat["data.mode"]),
    nodes: `${flat["hardware.nodes"]}`,
    gpus: `${flat["hardware.gpus_per_node"]}`,
    devices: `${known.devices}`,
    l_max: `${flat["schedule.l_max"]}`,
    l_cache: `${flat["algorithm.l_cache"]}`,
    ...Object.fromEntries(Object.entries(data.map.tested).map(([k, v]) => [`tested.${k}`, v])),
    ...files(engine, flat),
    options: options(known, engine, data.map).map(line).join("\n"),
    data: args(COLUMNS.map((k) => [k, flat[`data.${k}`]])),
    sampling: args([...data.sampling, "advantage_eps"].map((k) => [k, flat[`algorithm.${k}`]])),
  }, flags);
}

// ── the form ──
const POWERS = {
  log2_prompts: "schedule.prompts_per_rollout",
  log2_group: "schedule.group_size",
  log2_minibatches: "schedule.minibatches",
};
const FIELDS = {
  eps_low: "algorithm.eps_low", eps_high: "algorithm.eps_high", l_max: "schedule.l_max",
  l_cache: "algorithm.l_cache", dynamic: "algorithm.dynamic_sampling",
  reduction: "algorithm.reduction", overlong: "algorithm.overlong", model: "model.path",
};
const RANGES = { eps_low: [0, 1], eps_high: [0, 1], log2_prompts: [0, 12], log2_group: [1, 8], log2_minibatches: [0, 8], l_max: [1, 2 ** 20] };
const REDUCTIONS = ["token_mean", "group_token_mean", "micro_token_mean", "seq_mean", "seq_sum_const"];
const OVERLONG = { none: "overlong_none", soft: "overlong_soft", filter: "overlong_filter", linear: "overlong_linear" };
const ENGINES = ["ours", "verl", "trl"];
const NAMES = { verl: "verl", trl: "TRL" };
const SHOWN = [...Object.values(FIELDS).slice(0, 2), "algorithm.dynamic_sampling", "algorithm.reduction",
  "algorithm.overlong", "algorithm.l_cache", "schedule.l_max", ...Object.values(POWERS)];

// [[name, [[key, value], ...]], ...]: presets but the first are what differs from it
const presetOf = (name, data) => {
  const own = data.presets.find(([other]) => other === name) ?? data.presets[0];
  return { ...Object.fromEntries(data.presets[0][1]), ...Object.fromEntries(own[1]) };
};

// the run that a form's state stands for; anything odd falls back to the preset
export function filled(state, data) {
  const base = presetOf(state.preset, data);
  const flat = { ...base };
  const num = (name, [low, high]) => (Number.isFinite(state[name]) ? clamp(state[name], low, high) : null);
  for (const name of ["eps_low", "eps_high", "l_max"]) flat[FIELDS[name]] = num(name, RANGES[name]) ?? base[FIELDS[name]];
  flat["algorithm.l_cache"] = num("l_cache", [0, flat["schedule.l_max"]]) ?? base["algorithm.l_cache"];
  for (const [name, key] of Object.entries(POWERS)) {
    const power = num(name, RANGES[name]);
    flat[key] = power === null ? base[key] : 2 ** Math.round(power);
  }
  if (typeof state.dynamic === "boolean") flat["algorithm.dynamic_sampling"] = state.dynamic;
  if (REDUCTIONS.includes(state.reduction)) flat["algorithm.reduction"] = state.reduction;
  if (isText(state.overlong) && Object.hasOwn(OVERLONG, state.overlong)) flat["algorithm.overlong"] = state.overlong;
  if (isText(state.model) && state.model && !/[\p{C}\p{Zl}\p{Zp}]/u.test(state.model)) flat["model.path"] = state.model;
  return flat;
}

export const textOf = (engine, state, data) => {
  try {
    return render(engine, filled(state, data), data);
  } catch (error) {
    return { error: error.message };
  }
};

export const textsOf = (calls, data) => calls.map(([engine, state]) => textOf(engine, state, data));

function stateOf(preset, data) {
  const flat = presetOf(preset, data);
  const state = { preset };
  for (const [name, key] of Object.entries(FIELDS)) state[name] = flat[key];
  for (const [name, key] of Object.entries(POWERS)) state[name] = Math.round(Math.log2(flat[key]));
  return state;
}

// the end of a dotted name that tells it from others: clip_ratio_high, but rollout.n
const last = (key) => {
  const parts = key.split(".");
  return parts.slice(parts.at(-1).length > 6 ? -1 : -2).join(".");
};

function cell(ui, engine, row, known, found) {
  const own = found.find((o) => o.ours === row.ours);
  if (own) return `${last(own.key)}=${engine === "trl" ? pythonText(own.value) : hydraText(own.value)}`;
  const refills = row.ours === "algorithm.dynamic_sampling" && known[row.ours];
  if (engine === "trl" && refills) return ui.t("own_trainer");
  return engine === "trl" && row.script ? `${row.script}=${number(known[row.ours])}` : "–";
}

async function copy(box, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(box);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
}

function build(ui) {
  ui.given = ui.data("data");
  const base = () => presetOf(ui.model.get("preset"), ui.given);
  const start = (preset) => () => {
    ui.model.set(stateOf(preset, ui.given));
    ui.model.save_changes();
  };
  const power = (name, low, high) => ui.slider(name, { label: ui.t(name), min: low, max: high, show: (x) => `${2 ** x}` });
  ui.code = h("code", {});
  ui.box = h("pre", { class: "dw-code", tabindex: "0", "aria-label": ui.t("text") }, ui.code);
  ui.rows = h("div", {});
  ui.list = h("ul", { class: "dw-note" });
  return [
    h("div", { class: "dw-note" }, ui.t("presets")),
    h("div", { class: "dw-options dw-presets" }, ui.given.presets.map(([name], i) =>
      ui.button(name, start(name), { "data-preset": i ? name : "paper" }))),
    h("div", { class: "dw-controls" },
      ui.slider("eps_low", { label: ui.t("eps_low"), min: 0, max: 1, step: 0.01, show: (x) => fmt(x) }),
      ui.slider("eps_high", { label: ui.t("eps_high"), min: 0, max: 1, step: 0.01, show: (x) => fmt(x) }),
      power("log2_prompts", 3, 11), power("log2_group", 1, 8), power("log2_minibatches", 0, 6),
      ui.slider("l_max", { label: ui.t("l_max"), min: () => base()["schedule.l_max"] / 16, max: () => 2 * base()["schedule.l_max"], step: () => base()["schedule.l_max"] / 16 }),
      ui.slider("l_cache", { label: ui.t("l_cache"), min: 0, max: () => ui.num("l_max", 1, 2 ** 20, 1), step: () => base()["algorithm.l_cache"] / 4 })),
    ui.field("model", ui.t("model"), { limit: 200 }),
    h("div", { class: "dw-row" },
      ui.check("dynamic", ui.t("on"), ui.t("dynamic")),
      ui.choice("overlong", ui.t("overlong"), Object.entries(OVERLONG).map(([x, key]) => [x, ui.t(key)]))),
    ui.select("reduction", ui.t("reduction"), REDUCTIONS.map((x) => [x, x])),
    ui.rows,
    h("div", { class: "dw-row dw-block" },
      ui.choice("engine", ui.t("engine"), ENGINES.map((x) => [x, NAMES[x] ?? ui.t("ours")])),
      h("div", { class: "dw-field" }, h("span", {}, "\u00a0"), ui.button(ui.t("copy"), () => {
        ui.copied = ui.shown;
        copy(ui.code, ui.shown);
        ui.put("copies", ui.int("copies", 0, 1e9, 0) + 1);
      }))),
    ui.box,
    ui.list,
  ];
}

function draw(ui) {
  const state = Object.fromEntries([...Object.keys(FIELDS), ...Object.keys(POWERS), "preset"].map((k) => [k, ui.model.get(k)]));
  const engine = ui.pick("engine", ENGINES);
  const name = NAMES[engine] ?? ui.t("ours");
  const text = textOf(engine, state, ui.given);
  if (text.error) {
    ui.code.replaceChildren();
    ui.list.replaceChildren();
    ui.rows.replaceChildren();
    return { text: ui.t("uneven", { why: text.error }), bad: true };
  }
  const known = values(filled(state, ui.given), ui.given.map);
  const found = { verl: options(known, "verl", ui.given.map), trl: options(known, "trl", ui.given.map) };
  const code = (x) => h("code", {}, x);
  const columns = Object.keys(NAMES);
  // a phone shows one engine, the chosen one
  const roomy = (e) => ({ left: true, cls: e === (engine === "trl" ? "verl" : "trl") ? "dw-roomy" : "" });
  ui.rows.replaceChildren(table(
    [{ text: ui.t("ours"), left: true }, ...columns.map((e) => ({ text: NAMES[e], ...roomy(e) }))],
    ui.given.map.rows.filter((row) => SHOWN.includes(row.ours)).map((row) => [
      code(`${row.ours.split(".")[1]}: ${yamlText(known[row.ours])}`),
      ...columns.map((e) => ({ text: code(cell(ui, e, row, known, found[e])), ...roomy(e) })),
    ]), { caption: ui.t("rows") }));
  const before = new Set(render(engine, presetOf(state.preset, ui.given), ui.given).split("\n"));
  ui.shown = text;
  ui.code.replaceChildren(...text.split("\n").flatMap((line) =>
    [before.has(line) ? line : h("mark", {}, line), "\n"]));
  const told = engine === "ours" ? [] : limits(known, engine, ui.given.map);
  ui.list.replaceChildren(...told.map((x) =>
    h("li", { class: x.level === "lost" ? "wrong" : null }, ``,
      // what stands between backticks is code
      `${ui.t(x.level)}${ui.t(`limit_${x.id}`)}`.split("`").map((part, i) => (i % 2 ? code(part) : part)))));
  const lost = told.filter((x) => x.level === "lost").length;
  const counts = { engine: name, lost, differs: told.length - lost, lines: text.split("\n").length - 1 };
  const key = engine === "ours" ? "summary_ours" : lost ? "summary_lost" : "summary";
  return {
    text: ui.join(ui.t(key, counts), ui.copied === text && ui.t("copied", counts)),
    bad: lost > 0,
  };
}

export default { render: (view) => mount(view, { build, draw }) };
