"use strict";
// Sorting: a click on a heading goes down, then up, then back to the paper's order.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], printed = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column], text = cell.textContent.trim(), number = Number.parseFloat(text.replace(/,/g, ""));
    if (!column || (Number.isNaN(number) && !table.classList.contains("numbers"))) return text;
    return Number.isNaN(number) ? null : number;
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const next = { undefined: "descending", descending: "ascending" }[head.getAttribute("aria-sort") ?? "undefined"];
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    let rows = printed;
    if (next) {
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      rows = [...printed].sort((a, b) => {
        const [x, y] = [value(a, column), value(b, column)];
        if (x === null || y === null) return (x === null) - (y === null); // what has no number is last
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
      });
    }
    body.append(...rows);
  }));
}
// Filters.
const sections = [...document.querySelectorAll("section.table")], search = document.getElementById("search");
const selects = [...document.querySelectorAll("[data-filter]")];
// What is folded away is not searched.
const told = (section) => [...section.children].filter((part) => part.tagName !== "DETAILS").map((part) => part.textContent).join(" ");
const texts = new Map(sections.map((section) => [section, told(section).toLowerCase()]));
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const section of sections) {
    const fits = words.every((word) => texts.get(section).includes(word))
      && selects.every((s) => !s.value || section.dataset[s.dataset.filter].split(" ").includes(s.value));
    section.hidden = !fits;
    document.querySelector(`tr[data-section="${section.id}"]`).hidden = !fits;
    shown += fits;
  }
  document.getElementById("count").textContent = `${shown} of ${sections.length} tables`;
}
search.addEventListener("input", filter);
selects.forEach((select) => select.addEventListener("change", filter));
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
filter();
// Light and dark: the system's choice, until the reader makes one.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = (root.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
});
// Plots, enlarged.
const viewer = document.getElementById("viewer"), large = viewer.querySelector("img");
let size = 100;
const zoom = (factor) => { size = Math.min(800, Math.max(25, size * factor)); large.style.width = `${size}%`; };
for (const button of document.querySelectorAll(".zoom")) {
  button.addEventListener("click", () => {
    const image = button.querySelector("img");
    large.src = image.src; large.alt = image.alt; size = 100; zoom(1); viewer.showModal();
  });
}
document.getElementById("larger").addEventListener("click", () => zoom(1.5));
document.getElementById("smaller").addEventListener("click", () => zoom(1 / 1.5));
