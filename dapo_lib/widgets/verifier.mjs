// Paste an answer, see verdict and reason: the library's verifier in the browser. Its
// tables (marks, wrappers, patterns, diagnoses) come from dapo_lib/verifier/rules.py
// as data, so there is one set of rules; only the walking is written twice.
import { h, mount } from "./kit.mjs";

const SPACES = "\\t\\n\\v\\f\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

// A Python pattern as JavaScript reads it: white space, letters, word ends and the dot
// mean in Python what they do not in JavaScript, so they are spelled out.
const LETTER = "[\\p{L}\\p{Nl}\\p{No}]";
export function regex(source, flags = "") {
  let out = "";
  let inClass = false;
  const text = source.replaceAll("[^\\W\\d_]", "\u0000");
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i];
    if (c === "\u0000") out += LETTER;
    else if (c === "\\") {
      i += 1;
      if (text[i] === "s") out += inClass ? SPACES : `[${SPACES}]`;
      else if (text[i] === "b") out += "(?![\\p{L}\\p{N}_])";
      else out += c + text[i];
    } else if (c === "." && !inClass) out += "[^\\n]";
    else {
      if (c === "[" && !inClass) inClass = true;
      else if (c === "]" && inClass) inClass = false;
      out += c;
    }
  }
  return new RegExp(out, out.includes("\\p{") ? `${flags}u` : flags);
}

export function compile(rules) {
  const whole = (source) => regex(`^(?:${source})$`);
  return {
    ...rules,
    marks: rules.marks.map(([kind, p]) => [kind, regex(p, "g")]),
    special: regex(rules.special, "g"),
    specialHere: regex(`^(?:${rules.special})`),
    decimal: whole(rules.decimal),
    frac: whole(rules.frac),
    currencyHere: regex(`^(?:${rules.currency})`),
    unitEnd: regex(rules.unit),
    variableHere: regex(`^(?:${rules.variable})`),
    why: rules.diagnoses.map(([code, p]) => [code, regex(`^(?:${p})`)]),
    multipliers: new Set(rules.multipliers),
    numericStart: regex(`^(?:${rules.numeric_start})`),
    blank: regex(`^[\\s]*$`),
  };
}

const strip = (text, set) => {
  let [a, b] = [0, text.length];
  while (a < b && set.includes(text[a])) a += 1;
  while (b > a && set.includes(text[b - 1])) b -= 1;
  return text.slice(a, b);
};
const isSpace = (c) => /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/.test(c);
const trim = (text) => {
  let [a, b] = [0, text.length];
  while (a < b && isSpace(text[a])) a += 1;
  while (b > a && isSpace(text[b - 1])) b -= 1;
  return text.slice(a, b);
};
const rtrim = (text) => {
  let b = text.length;
  while (b > 0 && isSpace(text[b - 1])) b -= 1;
  return text.slice(0, b);
};
const size = (text) => [...text].length;

// ── where the answer stands ──
const none = (fault) => ({ text: null, fault, bare: false });
const found = (text, bare = false) => ({ text, fault: "", bare });

export function extract(text, mode, R) {
  if (R.blank.test(text)) return none("empty_response");
  if (mode === "gsm8k") return gsm8k(text, R);
  const [at, kind] = lastMark(text, R);
  const hashed = mode === "answer" ? null : hashLine(text, at, R);
  if (hashed) return hashed;
  if (kind === "box") return boxed(text, at, R);
  if (kind === "line") return line(text, at, R);
  return mode === "answer" ? none("no_answer") : bare(text, R);
}

function lastMark(text, R) {
  let [last, kind] = [-1, ""];
  for (const [name, pattern] of R.marks) {
    for (const m of text.matchAll(pattern)) {
      const end = m.index + m[0].length;
      if (end > last) [last, kind] = [end, name];
    }
  }
  return [last, kind];
}

function hashLine(text, after, R) {
  const at = text.lastIndexOf(R.hash_mark);
  if (at < Math.max(after, 0) || (at > 0 && text[at - 1] !== "\n")) return null;
  const span = line(text, at + R.hash_mark.length, R);
  return span.text !== null && read(span.text, false, R).fault === "" ? span : null;
}

function gsm8k(text, R) {
  const hashed = text.lastIndexOf(R.hash_mark);
  let letter = text.lastIndexOf(`\n${R.letter_mark}`) + 1;
  if (letter === 0 && !text.startsWith(R.letter_mark)) letter = -1;
  if (Math.max(hashed, letter) < 0) return none("no_answer");
  const mark = hashed > letter ? R.hash_mark : R.letter_mark;
  return line(text, Math.max(hashed, letter) + mark.length, R);
}

function boxed(text, start, R) {
  const end = Math.min(text.length, start + R.window);
  let depth = 1;
  for (let at = start; at < end; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "{") depth += 1;
    else if (text[at] === "}" && --depth === 0) return checked(text.slice(start, at), R);
  }
  return none(end === text.length ? "unclosed_box" : "too_long");
}

function line(text, start, R) {
  let window = text.slice(start, start + R.window);
  let skip = 0;
  while (skip < window.length && R.emphasis.includes(window[skip])) skip += 1;
  window = window.slice(skip);
  const closing = R.display[window.slice(0, 2)];
  const end = closing ? window.indexOf(closing, 2) : -1;
  if (end > 0) return checked(window.slice(0, end + 2), R);
  const first = window.split("\n", 1)[0].split("\r", 1)[0];
  return checked(withoutSpecial(first.split(R.closing, 1)[0], R), R);
}

function bare(text, R) {
  const window = trim(text).slice(0, R.window);
  const inner = withoutSpecial(window, R);
  if (size(inner) > R.max_answer || inner.length === R.window) return none("no_answer");
  return inner ? found(inner, true) : { text: "", fault: "empty_answer", bare: true };
}

function withoutSpecial(window, R) {
  let rest = window;
  for (let m; (m = R.specialHere.exec(rest)); ) rest = rest.slice(m[0].length);
  R.special.lastIndex = 0;
  const m = R.special.exec(rest);
  return trim(m ? rest.slice(0, m.index) : rest);
}

function checked(answer, R) {
  if (!strip(answer, R.emphasis)) return none("empty_answer");
  return size(answer) <= R.max_answer ? found(answer) : none("too_long");
}

// ── which number it is: an exact fraction {n, d} of BigInts ──
const bad = (fault) => ({ value: null, fault });
const good = (n, d = 1n) => ({ value: lowest(n, d), fault: "" });

function lowest(n, d) {
  let [a, b] = [n < 0n ? -n : n, d];
  while (b) [a, b] = [b, a % b];
  return { n: n / a, d: d / a };
}

export function read(answer, isGsm8k, R) {
  if (size(answer) > R.max_answer) return bad("too_long");
  let text = clean(answer, R);
  if (isGsm8k) {
    const [rest, scaled] = withoutUnit(text, R);
    if (scaled) return bad("multiplier_word");
    text = rest;
  }
  return number(text, R) ?? bad(diagnose(text, R));
}

export function clean(answer, R) {
  let text = "";
  for (const c of answer) text += Object.hasOwn(R.same_character, c) ? R.same_character[c] : c;
  if (/[\\{~]/.test(text)) for (const [spelled, meant] of R.same_latex) text = text.replaceAll(spelled, meant);
  text = unwrap(strip(text, R.emphasis), R);
  const [last, before] = [text.slice(-1), text.slice(-2, -1)];
  if (last && R.full_stops.includes(last) && before && !R.full_stops.includes(before)) {
    text = unwrap(strip(text.slice(0, -1), R.emphasis), R);
  }
  const named = R.variableHere.exec(text);
  return named ? unwrap(text.slice(named[0].length), R) : text;
}

function unwrap(text, R) {
  while (text && Object.hasOwn(R.wrappers, text[0])) {
    const pair = R.wrappers[text[0]].find(([a, b]) =>
      text.startsWith(a) && text.endsWith(b) && text.length >= a.length + b.length);
    if (!pair) return text;
    text = strip(text.slice(pair[0].length, text.length - pair[1].length), R.emphasis);
  }
  return text;
}

function number(text, R) {
  if (!text.endsWith("%")) return noPercent(text, R);
  const body = text.slice(0, -1);
  const part = noPercent(unwrap(rtrim(body.endsWith("\\") ? body.slice(0, -1) : body), R), R);
  return part?.value ? good(part.value.n, part.value.d * 100n) : part;
}

function noPercent(text, R) {
  const m = R.frac.exec(text);
  if (m) return quotient(m[1], strip(m[2], "{}"), strip(m[3], "{}"), R);
  const slash = text.indexOf("/");
  if (slash >= 0) return quotient("", text.slice(0, slash), text.slice(slash + 1), R);
  return decimal(text, R);
}

function quotient(sign, above, below, R) {
  const [a, b] = [decimal(trim(above), R), decimal(trim(below), R)];
  if (!a || !b) return null;
  if (!a.value || !b.value) return a.value ? b : a;
  if (b.value.n === 0n) return bad("zero_denominator");
  let [n, d] = [a.value.n * b.value.d, a.value.d * b.value.n];
  if (d < 0n) [n, d] = [-n, -d];
  return good(sign === "-" ? -n : n, d);
}

function decimal(text, R) {
  const m = R.decimal.exec(text);
  if (!m) return null;
  const [, sign, grouped, simple, after = "", exponent] = m;
  const before = (grouped ?? simple ?? "").replaceAll(",", "");
  if (!before && !after) return null;
  const digits = (exponent ?? "0").replace(/^[+-]+/, "");
  if (digits.length > R.max_exponent_digits) return bad("number_too_large");
  const power = Number(exponent ?? 0) - after.length;
  const value = BigInt(before + after) * (sign === "-" ? -1n : 1n);
  return power >= 0 ? good(value * 10n ** BigInt(power)) : good(value, 10n ** BigInt(-power));
}

function withoutUnit(text, R) {
  const m = R.currencyHere.exec(text);
  if (m) text = m[1] + text.slice(m[0].length).replace(/^\s+/, "");
  const unit = R.unitEnd.exec(text);
  if (!unit || unit.index === 0) return [text, false];
  const words = unit[0].replaceAll("/", " ").split(/\s+/);
  if (words.some((word) => R.multipliers.has(word.toLowerCase()))) return [text, true];
  return [rtrim(text.slice(0, unit.index)), false];
}

export function diagnose(text, R) {
  if (!text) return "empty_answer";
  return R.why.find(([, pattern]) => pattern.test(text))?.[0] ?? "not_a_number";
}

// ── the verdict ──
function answerOf(text, mode, R) {
  const span = extract(text, mode, R);
  if (span.text === null) return [span, bad(span.fault)];
  const got = read(span.text, mode === "gsm8k", R);
  if (span.bare && got.fault && !R.numericStart.test(span.text)) return [none(""), bad("no_answer")];
  if (mode !== "aime" || !got.value) return [span, got];
  if (got.value.d !== 1n) return [span, bad("not_an_integer")];
  return [span, got.value.n >= 0n && got.value.n <= 999n ? got : bad("out_of_range")];
}

function reference(text, mode, R) {
  let [span, got] = answerOf(text, mode, R);
  if (span.fault === "no_answer" && ["answer", "gsm8k"].includes(mode)) {
    span = found(trim(text));
    got = read(span.text, mode === "gsm8k", R);
  }
  return got.value ? { text: span.text ?? "", value: got.value } : null;
}

export function verify(response, wanted, mode, rules) {
  const R = rules.why ? rules : compile(rules);
  const gold = reference(wanted, mode, R);
  if (!gold) return { correct: null, extracted: null, reason: "reference_unparsable", value: null };
  const [span, got] = answerOf(response, mode, R);
  if (!got.value) return { correct: false, extracted: span.text, reason: got.fault, value: null };
  const { n, d } = got.value;
  const value = d === 1n ? `${n}` : `${n}/${d}`;
  const equal = n === gold.value.n && d === gold.value.d;
  const reason = !equal ? "different" : span.text === gold.text ? "same" : "equal_value";
  return { correct: equal, extracted: span.text, reason, value };
}

export const verifyAll = (cases, rules) => {
  const R = compile(rules);
  return cases.map(([response, wanted, mode]) => verify(response, wanted, mode, R));
};

const EXAMPLES = [
  ["\\boxed{12} … \\boxed{34}", "34"], ["答案：３４。", "34"], ["**Answer:** \\dfrac{1}{2}", "0.5"],
  ["Answer: 1,2,3", "123"], ["Answer: 3:00", "3"], ["so \\boxed{34", "34"], ["Answer: 50%", "0.5"],
];

export default {
  render: (view) =>
    mount(view, {
      build(ui) {
        ui.rules = compile(ui.data("rules"));
        const use = ([response, gold]) => {
          ui.model.set({ response, reference: gold });
          ui.model.save_changes();
        };
        ui.out = h("div", { class: "dw-verdict" });
        return [
          h("div", { class: "dw-note" }, ui.t("examples")),
          h("div", { class: "dw-options dw-presets" }, EXAMPLES.map((e) => ui.button(e[0], () => use(e)))),
          ui.field("response", ui.t("response"), { rows: 4 }),
          ui.field("reference", ui.t("reference"), { limit: 300 }),
          ui.choice("mode", ui.t("mode"), ui.rules.modes.map((m) => [m, m])),
          ui.out,
        ];
      },
      draw(ui) {
        const mode = ui.pick("mode", ui.rules.modes);
        const v = verify(ui.text("response"), ui.text("reference", 300), mode, ui.rules);
        const [word, cls] = v.correct === null ? ["ungraded", "dw-note"] : v.correct ? ["accepted", "good"] : ["rejected", "wrong"];
        const row = (label, value) => [h("dt", {}, label), h("dd", {}, value)];
        ui.out.replaceChildren(h("dl", {},
          row(ui.t("verdict"), h("span", { class: cls }, `${v.correct ? "✓" : "✗"} ${ui.t(word)}`)),
          row(ui.t("extracted"), v.extracted === null ? "–" : h("code", {}, v.extracted.slice(0, 300))),
          row(ui.t("value"), v.value === null ? "–" : h("code", {}, v.value.slice(0, 80))),
          row(ui.t("code"), h("code", {}, v.reason))));
        return { text: ui.t(`reason_${v.reason}`), bad: v.correct !== true };
      },
    }),
};
