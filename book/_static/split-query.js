// Cuts a Chinese query into words that the index holds (fewest words, longest first).
// Sphinx calls it after the index has loaded. Left out: languages with spaces.
function splitQuery(query) {
  const parts = query.split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu);
  const known = (word) => {
    const { terms = {}, titleterms = {} } = Search._index ?? {};
    return Object.hasOwn(terms, word) || Object.hasOwn(titleterms, word);
  };
  const cut = (text) => {
    // best[i]: [characters left unexplained, words used, words] for text.slice(0, i)
    const best = [[0, 0, []]];
    for (let end = 1; end <= text.length; end++) {
      best[end] = [best[end - 1][0] + 1, best[end - 1][1], best[end - 1][2]];
      for (let start = 0; start < end - 1; start++) {
        const word = text.slice(start, end);
        if (!known(word)) continue;
        const [left, used, words] = best[start];
        const better = left - best[end][0] || used + 1 - best[end][1];
        if (better < 0) best[end] = [left, used + 1, [...words, word]];
      }
    }
    const words = best[text.length][2];
    return words.length ? words : [text];
  };
  return parts
    .flatMap((part) => part.match(/[\u3400-\u9fff]+|[^\u3400-\u9fff]+/gu) ?? [])
    .flatMap((part) => (/[\u3400-\u9fff]/u.test(part) ? cut(part) : [part]));
}
