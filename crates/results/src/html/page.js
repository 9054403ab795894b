"use strict";
// Everything is readable without this: it shows numbers at points, hides lines, sorts tables and changes the colours.
(() => {
  const root = document.documentElement;
  root.classList.add("script");

  const themes = ["as the system", "light", "dark"];
  const button = document.getElementById("theme");
  let theme = 0;
  button.addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    if (theme) root.dataset.theme = themes[theme]; else delete root.dataset.theme;
    button.textContent = "Colours: " + themes[theme];
  });

  const tip = document.getElementById("tip");
  const show = (text, event) => {
    tip.textContent = text;
    tip.style.display = "block";
    tip.style.left = event.pageX + 14 + "px";
    tip.style.top = event.pageY + 10 + "px";
  };
  const hide = () => { tip.style.display = "none"; };

  // A line is as many circles as it has points, then its path and its intervals, up to the next line's circles. Parts of
  // a whole are a polygon each, and all circles come behind those.
  const shapes = (svg, lines) => {
    // The legend's come first: one for each line whose points are not joined.
    const circles = [...svg.querySelectorAll("circle")].slice(lines.filter((line) => !line.joined).length);
    const total = lines.reduce((sum, line) => sum + line.points.length, 0);
    if (circles.length !== total) return [];
    const areas = [...svg.querySelectorAll("polygon")];
    let at = 0;
    return lines.map((line, number) => {
      const own = circles.slice(at, at + line.points.length);
      at += own.length;
      const rest = areas.slice(number, number + 1);
      let next = own.length ? own[own.length - 1].nextElementSibling : null;
      for (; next && next.tagName === "polyline"; next = next.nextElementSibling) rest.push(next);
      return { line, circles: own, all: own.concat(rest) };
    });
  };

  for (const figure of document.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg");
    const lines = JSON.parse(figure.querySelector("script").textContent);
    const drawn = shapes(svg, lines);
    drawn.forEach(({ line, circles }) => circles.forEach((circle, i) => { circle.tip = line.name + "\n" + line.points[i]; }));
    svg.addEventListener("pointermove", (event) => {
      let best = null, least = 30;
      for (const { circles } of drawn) for (const circle of circles) {
        if (circle.classList.contains("off")) continue;
        const box = circle.getBoundingClientRect();
        const far = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
        if (least > far) { least = far; best = circle; }
      }
      if (best) show(best.tip, event); else hide();
    });
    svg.addEventListener("pointerleave", hide);
    const texts = [...svg.querySelectorAll("text")];
    for (const { line, all } of drawn) {
      const entry = texts.find((text) => text.textContent.trim() === line.name);
      if (!entry) continue;
      entry.classList.add("entry");
      entry.addEventListener("click", () => {
        const off = entry.classList.toggle("off");
        all.forEach((shape) => shape.classList.toggle("off", off));
      });
    }
  }

  for (const head of document.querySelectorAll("th.sorts")) {
    let down = false;
    head.addEventListener("click", () => {
      const rows = [...head.closest("table").querySelectorAll("tr")].slice(1);
      const value = (row) => row.cells[head.cellIndex].textContent;
      const key = (row) => { const number = parseFloat(value(row)); return Number.isNaN(number) ? -Infinity : number; };
      const text = rows.every((row) => Number.isNaN(parseFloat(value(row))));
      rows.sort((a, b) => (text ? value(a).localeCompare(value(b)) : key(a) - key(b)) * (down ? -1 : 1));
      down = !down;
      rows.forEach((row) => row.parentNode.append(row));
    });
  }
})();
