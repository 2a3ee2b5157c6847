// Every nominal time of a schedule, and what became of it: a cell each, a reason for each that did not become a run.
// Arrow keys walk the cells of a strip, and only one of them is a tab stop.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { to } from "../core/address.js";
import { glyph, isBad, isOver, toneOf, why, wordOf } from "../core/states.js";
import { clock, full, ms, span } from "../core/time.js";
import { counted } from "./parts.js";

const CELL = 26;
/** How many cells there is room for in so many pixels. */
export const roomFor = (width) => Math.max(6, Math.floor((width + 2) / CELL));
const nominal = (each) => ms(each.nominalTime ?? each.dueTime);

function cell(each, isStop, tell) {
  return html`<a class="cell ${toneOf(each.state)} ${each.skippedCount > 1 ? "many" : ""}" href=${to("/runs", each.triggerId)} tabindex=${isStop ? 0 : -1}
    aria-label="${full(nominal(each))}, ${wordOf(each.state)} ${why(each)}" @mouseenter=${() => tell(each)} @focus=${() => tell(each)}
    >${each.state === "succeeded" ? nothing : each.skippedCount > 1 ? html`${glyph(each.state)}<b>${each.skippedCount}</b>` : glyph(each.state)}</a>`;
}

function walk(event) {
  const step = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
  if (!step) return;
  event.preventDefault();
  event.target.closest(".cell")?.[step]?.focus();
}

/** The cells, oldest first. `told` is the one that the reader looks at; without one, the last that went wrong is. */
export function strip(triggers, { label, told = null, tell = () => {} }) {
  const wrong = triggers.filter((each) => each.state !== "succeeded" && isOver(each.state));
  const shown = told ?? wrong.findLast((each) => each.state === "skipped" || isBad(each.state));
  return html`<div class="cells" role="group" aria-label="The last ${counted(triggers.length, "time")} of ${label}; ${wrong.length} did not succeed" @keydown=${walk} ?hidden=${!triggers.length}>
      ${repeat(triggers, (each) => each.triggerId, (each) => cell(each, each === (told ?? triggers.at(-1)), tell))}</div>
    <p class="strip-why">${shown ? html`${glyph(shown.state)} <time>${clock(nominal(shown))}</time> ${wordOf(shown.state)}${why(shown) ? `: ${why(shown)}` : ""}${shown.lagMs != null ? `, started ${span(shown.lagMs)} after it was due` : ""}`
      : html`<span class="faint">${triggers.length ? "every time became a run that succeeded" : "no time has come yet"}</span>`}</p>`;
}
