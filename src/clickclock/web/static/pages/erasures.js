// What was erased, when and why, and that it was looked for again afterwards. A receipt never says what was erased.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { filterBar } from "../components/filter-bar.js";
import { card, counted, empty, fault, ignoredFilters, number, time, waiting } from "../components/parts.js";
import { listing } from "../core/listing.js";
import { glyph } from "../core/states.js";
import { ms } from "../core/time.js";

const NAMES = ["kind", "clientId"];
const KINDS = { erasure: "somebody asked", retention: "too old" };
const FIELDS = [{ name: "kind", label: "Why", options: [["", "all"], ...Object.entries(KINDS)] }, { name: "clientId", label: "Client", placeholder: "all" }];
const list = listing("/attribution/erasures", NAMES, 200);

export const title = () => "Erasures";

export const enter = list.enter;

const places = (rows) => Object.entries(rows).filter(([, many]) => many).map(([place, many]) => html`<span class="part">${place} <b>${number(many)}</b></span>`);

const row = (each) => html`<tr data-row><td><code>${each.id.slice(0, 12)}</code></td><td>${time(ms(each.createdAt))}</td><td>${KINDS[each.kind] ?? each.kind}${each.clientId ? html` <bdi class="faint">${each.clientId}</bdi>` : nothing}</td>
  <td class="cell-why">${each.reason || html`<span class="faint">no reason was given</span>`}${each.identifiers.length ? html`<details class="note-details"><summary>${counted(each.identifiers.length, "identifier")}, as digests</summary><ul>${each.identifiers.map(({ kind, digest }) => html`<li>${kind} <code class="digest">${digest}</code></li>`)}</ul></details>` : nothing}
    ${Object.keys(each.before).length ? html`<span class="under">${Object.entries(each.before).map(([table, day]) => `${table} before ${day}`).join(", ")}</span>` : nothing}</td>
  <td class="num">${number(each.total)}<span class="under">${places(each.rows)}</span></td><td class="cell-why">${each.verifiedFiles ? html`${glyph("succeeded")} ${counted(each.verifiedFiles, "file")}, ${number(Math.ceil(each.verifiedBytes / 1e6))} MB read again, nothing found` : nothing}</td></tr>`;

const underWay = ({ id, clientId, asked: kind, rows }) => html`<div class="banner" role="status"><p><b>An erasure is not finished.</b> It is of a <code>${kind}</code> of <bdi>${clientId}</bdi>, id <code>${id.slice(0, 12)}</code>. ${Object.keys(rows).length ? html`Found so far: ${places(rows)}.` : nothing}</p>
  <p class="under">If none is running now, it was interrupted. Finish it: <code>clickclock attribution erase</code></p></div>`;

const table = () => card("receipts", "Receipts", list.told.receipts.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="All receipts"><table class="stacked" data-rows>
    <thead><tr><th scope="col">Receipt</th><th scope="col">Done</th><th scope="col">Why</th><th scope="col">Reason</th><th scope="col" class="num">Rows</th><th scope="col">Verified</th></tr></thead><tbody>${repeat(list.told.receipts, ({ id }) => id, row)}</tbody></table></div>${list.told.hasMore ? html`<p class="note">There are older ones; choose a kind or a client.</p>` : nothing}`
  : NAMES.some((name) => list.chosen[name]) ? empty("No receipt fits", "Take a filter away.") : empty("Nothing was erased yet", "A person, or an order, is erased everywhere by one command. Its receipt appears here.", "clickclock attribution erase --client-id CLIENT --cli-ubid VISITOR --reason 'request 17'"), { count: list.told.receipts.length });

export function view() {
  if (!list.told && !list.wrong) return waiting("Erasures");
  return html`<div class="page"><div class="page-head"><h1>Erasures</h1></div>${ignoredFilters(list.chosen.ignored ?? [])}${filterBar(FIELDS, list.chosen, list.load)}${list.wrong ? fault(list.wrong) : nothing}
    ${list.told ? html`${list.told.underWay ? underWay(list.told.underWay) : nothing}${table()}` : nothing}</div>`;
}
