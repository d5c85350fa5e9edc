// What Sphinx and the theme leave out for readers who use the keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  // Buttons that unfold a part of the contents have no name: give them that of the link beside them.
  for (const summary of document.querySelectorAll("nav summary")) {
    const link = summary.closest("li")?.querySelector("a");
    if (link && !summary.textContent.trim()) summary.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
  // The roles of references in docstrings are deprecated.
  for (const element of document.querySelectorAll(".citation, .citation-list")) element.removeAttribute("role");
  // Sphinx writes a list within a list, but outside of its items.
  for (const list of document.querySelectorAll("ul > ul")) list.previousElementSibling?.append(list);
  // The keyboard has to reach formulas and tables that scroll.
  const reach = () => {
    for (const box of document.querySelectorAll('math[display="block"], .pst-scrollable-table-container')) {
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    }
  };
  reach();
  window.addEventListener("resize", reach);
});
