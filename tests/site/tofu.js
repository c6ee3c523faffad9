// The characters that are drawn as the box of a missing glyph.
() => {
  const draw = (character) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 40;
    const pen = canvas.getContext("2d");
    const paragraph = document.querySelector("article p");
    pen.font = `28px ${getComputedStyle(paragraph).fontFamily}`;
    pen.fillText(character, 4, 32);
    return canvas.toDataURL();
  };
  const missing = draw("\u{10ffff}");
  return [..."简体中文裁剪动态采样词元奖励熵"].filter((c) => draw(c) === missing);
}
