// Rows by keys: j and k go, x chooses the row, Shift and x all from the one that was chosen before. A list that marks itself
// with [data-rows] can be walked; its rows can be chosen where they hold a checkbox [data-choose].
const rows = () => [...document.querySelectorAll("[data-rows] [data-row]")];
const here = () => document.activeElement?.closest("[data-row]");
let last = -1;

export function step(by) {
  const all = rows(), at = all.indexOf(here()), row = all[Math.max(0, Math.min(all.length - 1, at + by))];
  /** @type {HTMLElement?} */ (row?.matches("a, button") ? row : row?.querySelector("a, button, summary"))?.focus();
}

/** Press the checkbox of the row that has the focus; with `isRange`, of all rows up to it. */
export function choose(isRange) {
  const all = rows(), at = all.indexOf(here()), box = (row) => row?.querySelector("[data-choose]");
  if (at < 0 || !box(all[at])) return;
  const wanted = !box(all[at]).checked, from = isRange && last >= 0 ? last : at;
  for (const row of all.slice(Math.min(from, at), Math.max(from, at) + 1)) if (box(row) && box(row).checked !== wanted) box(row).click();
  last = at;
}
