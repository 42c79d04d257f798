"use strict";
// Keeps a page that is left open as things are: each part that has changed is replaced by itself, unless the reader is
// in it. Offers each figure as SVG and PNG.
(() => {
  const main = document.getElementById("main"), state = document.getElementById("live");
  const say = text => { if (state && state.textContent !== text) state.textContent = text; };

  const save = (name, url) => {
    const a = document.createElement("a");
    a.download = name;
    a.href = url;
    a.click();
  };
  const drawing = svg => {
    const copy = svg.cloneNode(true), css = getComputedStyle(document.documentElement);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    let rules = "svg{font:12px sans-serif;background:" + css.getPropertyValue("--paper") + "}:root{";
    for (const name of ["ink", "paper", "line", "soft", "c0", "c1", "c2", "c3", "c4", "c5"])
      rules += "--" + name + ":" + css.getPropertyValue("--" + name) + ";";
    rules += "}";
    for (const sheet of document.styleSheets)
      for (const rule of sheet.cssRules)
        if (rule.selectorText && /svg|\.s\d|\.l\d|polyline|\.fill|\.open|\.mark/.test(rule.selectorText)) rules += rule.cssText;
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = rules;
    copy.prepend(style);
    return new XMLSerializer().serializeToString(copy);
  };
  const asPNG = (name, svg, text) => {
    const image = new Image(), box = svg.viewBox.baseVal;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * box.width;
      canvas.height = 2 * box.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      save(name + ".png", canvas.toDataURL("image/png"));
    };
    image.src = "data:image/svg+xml;base64," + btoa(unescape(encodeURIComponent(text)));
  };
  const offer = within => {
    for (const p of within.querySelectorAll("figure .data")) {
      const svg = p.parentElement.querySelector("svg"), link = p.querySelector("a");
      if (!svg || !link || p.querySelector("button")) continue;
      const name = link.download.replace(/\.csv$/, "");
      for (const kind of ["SVG", "PNG"]) {
        const b = document.createElement("button");
        b.type = "button";
        b.className = "as";
        b.textContent = kind;
        b.setAttribute("aria-label", "save the picture " + name + " as " + kind);
        b.addEventListener("click", () => {
          const text = drawing(svg);
          if (kind === "PNG") asPNG(name, svg, text);
          else save(name + ".svg", "data:image/svg+xml;base64," + btoa(unescape(encodeURIComponent(text))));
        });
        p.append(" ", b);
      }
    }
  };
  offer(document);

  if (!main || !main.dataset.live || !window.EventSource) return;
  let events = null, over = false;
  const waiting = new Map();
  const put = (id, html) => {
    const part = document.getElementById(id);
    if (!part) return;
    if (part.contains(document.activeElement)) {
      waiting.set(id, html);
      return;
    }
    waiting.delete(id);
    const chosen = [...part.querySelectorAll("input:checked")].map(i => i.value);
    part.innerHTML = html;
    for (const i of part.querySelectorAll("input[type=checkbox]")) i.checked = chosen.includes(i.value);
    offer(part);
  };
  // A browser keeps few connections to a server: a page that is not looked at gives its own up.
  const listen = () => {
    if (over || document.hidden || events && events.readyState !== EventSource.CLOSED) return;
    events = new EventSource(main.dataset.live);
    events.addEventListener("part", e => {
      const part = JSON.parse(e.data);
      put(part.id, part.html);
      say("live");
    });
    events.addEventListener("end", () => {
      over = true;
      events.close();
      say("ended");
    });
    events.onopen = () => say("live");
    events.onerror = () => say(events.readyState === EventSource.CLOSED ?
      "not connected: load the page again, or open its link" : "not connected, trying again");
  };
  listen();
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) listen();
    else if (events) {
      events.close();
      say("paused");
    }
  });
  document.addEventListener("focusout", () => setTimeout(() => waiting.forEach((html, id) => put(id, html))));
})();
