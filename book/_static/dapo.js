// The language link keeps the reader's place and choice. Left out: anything else.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-language]");
  if (!link) return;
  link.hash = location.hash;
  try {
    localStorage.setItem("dapo-lang", link.dataset.language);
  } catch {
    // private windows may forbid it; the link works all the same
  }
});
