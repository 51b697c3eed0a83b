// The search of the front page: filters the list that the page already holds, and keeps the
// question in the address, so that it can be sent to somebody.
"use strict";
(() => {
  const form = document.getElementById("search");
  if (!form) return;
  const fields = ["q", "kind", "level"].map((id) => document.getElementById(id));
  const [query, kind, level] = fields;
  const rows = [...document.querySelectorAll(".project")];
  const found = document.getElementById("found");
  const nothing = document.getElementById("nothing");

  const show = () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const least = level.selectedIndex;
    let count = 0;
    for (const row of rows) {
      const fits =
        words.every((word) => row.dataset.words.includes(word)) &&
        (!kind.value || row.dataset.kinds.split(" ").includes(kind.value)) &&
        Number(row.dataset.level) >= least;
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    found.textContent = `${count} project${count === 1 ? "" : "s"}`;
    nothing.hidden = count > 0;
    const state = new URLSearchParams();
    for (const field of fields) {
      if (field.value && field.value !== "none") state.set(field.id, field.value);
    }
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  const asked = new URLSearchParams(location.hash.slice(1));
  for (const field of fields) {
    if (asked.has(field.id)) field.value = asked.get(field.id);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== query) {
      event.preventDefault();
      query.focus();
    }
  });
  show();
})();
