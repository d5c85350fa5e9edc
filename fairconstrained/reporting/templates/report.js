// Tables sort when a heading is pressed: up, then down. Empty values stay at the end, rows of the foot below.
(() => {
  "use strict";

  const compareWords = new Intl.Collator("en", { numeric: true }).compare;

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    if (value === undefined) return { words: cell.textContent.trim(), empty: false };
    return { number: Number(value), empty: value === "" };
  };

  const compare = (a, b) => (a.words === undefined ? a.number - b.number : compareWords(a.words, b.words));

  const sort = (table, column, direction) => {
    const body = table.tBodies[0];
    const keyed = Array.from(body.rows, (row) => ({ row, key: keyOf(row, column) }));
    keyed.sort((a, b) => {
      if (a.key.empty || b.key.empty) return Number(a.key.empty) - Number(b.key.empty);
      return direction * compare(a.key, b.key);
    });
    body.append(...keyed.map(({ row }) => row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = Array.from(table.tHead.rows[0].cells);
    headings.forEach((heading, column) => {
      if (heading.querySelector(".ends")) return; // the scale of the bars, which show what another column says
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const ascending = heading.getAttribute("aria-sort") !== "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, ascending ? 1 : -1);
      });
    });
  }
})();
