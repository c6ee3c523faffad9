// The texts of an article whose contrast with what is behind them is below 4.5 (WCAG AA).
() => {
  const channel = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const luminance = (css) => {
    const [r, g, b] = css.match(/[\d.]+/g).map((v) => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const css = getComputedStyle(element).backgroundColor;
      if (!/, 0\)$|transparent/.test(css)) return css;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = "p, li, td, th, h1, h2, h3, figcaption, dd, dt, summary, pre, span";
  const bad = [];
  for (const element of document.querySelectorAll(`article :is(${texts})`)) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.getClientRects().length) continue;
    const front = luminance(getComputedStyle(element).color);
    const back = luminance(ground(element));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) bad.push([element.tagName, element.textContent.slice(0, 40), ratio]);
  }
  return bad;
}
