"use strict";
// Finds documents that have all words of a search, those first that have them in their titles, then those that have
// them most often. The documents are in index.js: nothing is asked of a server.
(() => {
  const input = document.getElementById("search"), found = document.getElementById("found");
  const root = document.currentScript.src.replace(/search\.js.*$/, ""), documents = window.documents || [];
  const count = (text, word) => text.split(word).length - 1;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(w => w);
    found.replaceChildren();
    if (!words.length) return;
    const hits = [];
    for (const d of documents) {
      const title = d.title.toLowerCase(), text = d.text.toLowerCase();
      let score = 0;
      for (const w of words) {
        const n = 100 * count(title, w) + count(text, w);
        if (!n) { score = 0; break; }
        score += n;
      }
      if (score) hits.push([score, d, text.indexOf(words[0])]);
    }
    hits.sort((a, b) => b[0] - a[0]);
    for (const [, d, at] of hits.slice(0, 12)) {
      const li = document.createElement("li"), a = document.createElement("a"), p = document.createElement("div");
      a.href = root + d.path.replace(/^\//, "");
      a.textContent = d.title;
      p.textContent = at < 0 ? "" : "…" + d.text.slice(Math.max(0, at - 30), at + 70) + "…";
      li.append(a, p);
      found.append(li);
    }
    if (!hits.length) found.append(Object.assign(document.createElement("li"), { textContent: "nothing has all of these words" }));
  });
})();
