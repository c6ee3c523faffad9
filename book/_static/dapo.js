// The language link keeps the reader's place and choice; links say what they lead to.
// Printing opens what is folded. Left out: anything else.
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-print]")) window.print();
  const link = event.target.closest?.("a[data-language]");
  if (!link) return;
  link.hash = location.hash;
  try {
    localStorage.setItem("dapo-lang", link.dataset.language);
  } catch {
    // private windows may forbid it; the link works all the same
  }
});

// What a link to a term or a cited work says, shown beside it: on hover, on keyboard
// focus, gone with Escape. The browser's own title shows late and never on focus.
document.addEventListener("DOMContentLoaded", () => {
  const tip = document.createElement("div");
  tip.className = "dapo-tip";
  tip.id = "dapo-tip";
  tip.role = "tooltip";
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const show = (link) => {
    tip.textContent = link.dataset.tip;
    tip.hidden = false;
    const box = link.getBoundingClientRect();
    const room = document.documentElement.clientWidth - tip.offsetWidth - 16;
    tip.style.left = `${Math.max(16, Math.min(box.left, room)) + scrollX}px`;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.top = `${(above > 60 ? above : box.bottom + 8) + scrollY}px`;
  };
  for (const link of document.querySelectorAll("article a[title]:not(.headerlink)")) {
    link.dataset.tip = link.title;
    link.removeAttribute("title");
    link.setAttribute("aria-describedby", tip.id);
    link.addEventListener("pointerenter", () => show(link));
    link.addEventListener("focus", () => show(link));
    link.addEventListener("pointerleave", hide);
    link.addEventListener("blur", hide);
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
});

// What is folded is printed: browsers that cannot do it by style open it for the while.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open])")) {
    fold.open = true;
    addEventListener("afterprint", () => { fold.open = false; }, { once: true });
  }
});
