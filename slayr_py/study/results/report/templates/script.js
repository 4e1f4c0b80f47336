"use strict";

// Sort a table by a column: numbers by value, text by its letters, missing values last.
function sortBy(table, column, header) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const key = (row) => {
    const cell = row.cells[column];
    if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
    return cell.textContent === "–" ? null : cell.textContent;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const sign = descending ? -1 : 1;
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * a.localeCompare(b, undefined, { numeric: true });
  };
  const rows = Array.from(body.rows, (row) => [key(row), row]);
  rows.sort((a, b) => compare(a[0], b[0]));
  body.append(...rows.map((pair) => pair[1]));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

for (const table of document.querySelectorAll("table.interactive")) {
  Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => sortBy(table, column, header));
  });
}

for (const input of document.querySelectorAll("input[data-table]")) {
  const rows = Array.from(document.getElementById(input.dataset.table).tBodies[0].rows);
  const output = input.parentElement.querySelector("output");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    output.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
  });
}

// The theme follows the system until a reader chooses one; the choice lasts while the page is open.
const theme = document.getElementById("theme");
const themes = ["system", "light", "dark"];
theme.hidden = false;
theme.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || "system";
  const next = themes[(themes.indexOf(now) + 1) % themes.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  theme.textContent = `Theme: ${next}`;
});

// Mark the section in view in the navigation.
const links = new Map(Array.from(document.querySelectorAll("nav a"), (link) => [link.hash.slice(1), link]));
const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-20% 0px -70% 0px" },
);
for (const section of document.querySelectorAll("main > section")) observer.observe(section);
