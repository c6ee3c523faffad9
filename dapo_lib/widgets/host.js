// Brings the widgets of a static page to life: no kernel, no network.
// It reads the page's one JSON block (#dapo-widgets: models, links, classes), gives
// each model the part of the anywidget interface that our modules use, and renders
// every <div class="dapo-widget" data-model="...">. data-state tells how it went.
// Left out: messages to a kernel, views inside views, anything but anywidget classes.
(() => {
  "use strict";

  const FAILED = {
    en: "This interactive figure could not start: ",
    zh: "这个交互组件无法启动：",
  };
  const page = document.documentElement.lang.toLowerCase();
  const lang = page.startsWith("zh") ? "zh" : page ? "en" : null;

  const own = (object, key) =>
    object && typeof object === "object" && Object.hasOwn(object, key)
      ? object[key]
      : undefined;

  function same(a, b) {
    if (Object.is(a, b)) return true;
    if (!a || !b || typeof a !== "object" || typeof b !== "object") return false;
    if (Array.isArray(a) !== Array.isArray(b)) return false;
    const keys = Object.keys(a);
    if (keys.length !== Object.keys(b).length) return false;
    return keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
  }

  class Model {
    constructor(state) {
      this.state = new Map(Object.entries(state));
      this.handlers = new Map();
    }
    get(name) {
      return this.state.get(name);
    }
    // as Backbone does: "change:<name>" for each value that really changed, then one
    // "change", all before set returns
    set(name, value) {
      const values = typeof name === "string" ? [[name, value]] : Object.entries(name);
      const changed = values.filter(([key, v]) => !same(this.state.get(key), v));
      for (const [key, v] of changed) this.state.set(key, v);
      for (const [key, v] of changed) this.trigger(`change:${key}`, v);
      if (changed.length) this.trigger("change");
    }
    on(names, handler) {
      for (const name of names.split(" ")) {
        this.handlers.set(name, [...(this.handlers.get(name) ?? []), handler]);
      }
    }
    off(names, handler) {
      for (const name of names ? names.split(" ") : [...this.handlers.keys()]) {
        const left = (this.handlers.get(name) ?? []).filter((h) => h !== handler);
        this.handlers.set(name, handler ? left : []);
      }
    }
    trigger(name, value) {
      for (const handler of this.handlers.get(name) ?? []) handler(this, value);
    }
    save_changes() {}
    send() {}
  }

  const modules = new Map();
  function load(name, classes) {
    if (!modules.has(name)) modules.set(name, importClass(name, own(classes, name)));
    return modules.get(name);
  }

  async function importClass(name, entry) {
    if (typeof own(entry, "esm") !== "string") throw new Error(`no module for ${name}`);
    addStyle(own(entry, "css"));
    const url = URL.createObjectURL(new Blob([entry.esm], { type: "text/javascript" }));
    try {
      const widget = (await import(url)).default;
      return typeof widget === "function" ? await widget() : widget;
    } finally {
      URL.revokeObjectURL(url);
    }
  }

  const styles = new Set();
  function addStyle(css) {
    if (typeof css !== "string" || styles.has(css)) return;
    styles.add(css);
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
  }

  function createModels(entries) {
    const models = new Map();
    for (const [id, entry] of Object.entries(entries ?? {})) {
      const model = new Model(own(entry, "state") ?? {});
      if (lang) model.set("lang", lang);
      models.set(id, { model, name: own(entry, "class"), ready: null });
    }
    return models;
  }

  function connect(models, link) {
    const [[from, a], [to, b]] = [link.source, link.target];
    const source = models.get(from)?.model;
    const target = models.get(to)?.model;
    if (!source || !target) return;
    const copy = () => target.set(b, source.get(a));
    copy();
    source.on(`change:${a}`, copy);
    if (link.two_way) target.on(`change:${b}`, () => source.set(a, target.get(b)));
  }

  async function hydrate(div, models, classes) {
    try {
      const entry = models.get(div.dataset.model);
      if (!entry) throw new Error(`no state for ${div.dataset.model}`);
      const widget = await load(entry.name, classes);
      const { model } = entry;
      entry.ready ??= Promise.resolve(widget.initialize?.({ model }));
      await entry.ready;
      const el = document.createElement("div");
      div.replaceChildren(el);
      await widget.render({ model, el });
      div.dataset.state = "ready";
    } catch (error) {
      fail(div, error);
    }
  }

  function fail(div, error) {
    const note = document.createElement("p");
    note.setAttribute("role", "alert");
    note.textContent = FAILED[lang ?? "en"] + (error?.message ?? error);
    div.replaceChildren(note);
    div.dataset.state = "error";
  }

  function start() {
    const divs = [...document.querySelectorAll("div.dapo-widget")];
    if (!divs.length) return;
    try {
      const block = document.getElementById("dapo-widgets");
      const data = JSON.parse(block?.textContent ?? "{}");
      const models = createModels(own(data, "models"));
      for (const link of own(data, "links") ?? []) connect(models, link);
      for (const div of divs) hydrate(div, models, own(data, "classes"));
    } catch (error) {
      for (const div of divs) fail(div, error);
    }
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else start();
})();
