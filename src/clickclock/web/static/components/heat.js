// A grid of cells, each a link and a shade. Arrow keys walk the cells, and only one of them is a tab stop.
import { html } from "../vendor/lit-html/lit-html.js";

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

function walk(event) {
  const step = STEPS[event.key], cell = event.target.closest("td");
  if (!step || !cell) return;
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll("tbody tr")], row = rows.indexOf(cell.parentElement) + step[0];
  rows[row]?.cells[cell.cellIndex + step[1]]?.querySelector("a")?.focus();
}

const cell = (each, isStop, tell) => (each == null ? html`<td><span class="heat-none"></span></td>` : html`<td><a class="heat-cell ${each.isChosen ? "chosen" : ""}" href=${each.href} tabindex=${isStop ? 0 : -1} aria-label=${each.label} title=${each.label}
  .style=${`--share:${(each.share * 100).toFixed(1)}%`} @focus=${() => tell(each)} @mouseenter=${() => tell(each)}>${each.text}</a></td>`);

/** `rows`: `{ head, cells: [{ share, text, label, href, isChosen } | null] }`. `share` is from 0 to 1. `columns` are headings. */
export function heat({ label, corner, columns, rows, tell = () => {} }) {
  const all = rows.flatMap((row) => row.cells.filter(Boolean)), stop = all.find((each) => each.isChosen) ?? all[0];
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}><table class="heat" @keydown=${walk}>
    <thead><tr><th scope="col">${corner}</th>${columns.map((each) => (each ? html`<th scope="col">${each}</th>` : html`<td></td>`))}</tr></thead>
    <tbody>${rows.map((row) => html`<tr><th scope="row">${row.head}</th>${row.cells.map((each) => cell(each, each === stop, tell))}</tr>`)}</tbody></table></div>`;
}

/** A share by the order of magnitude: where one value is a thousand times another, both are seen. */
export const shareOf = (value, top) => (value > 0 && top > 0 ? Math.log1p(value) / Math.log1p(top) : 0);
