// Who did what: every change that somebody asked for, what it changed, and what was refused. Reading it is recorded, too.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { changes, changedFields } from "../components/changes.js";
import { filterBar, SPANS, timeOf } from "../components/filter-bar.js";
import { empty, fault, ignoredFilters, jobLink, number, time, waiting } from "../components/parts.js";
import { settingTabs } from "../components/setting-tabs.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { glyph } from "../core/states.js";
import { ms, now } from "../core/time.js";

const NAMES = ["principal", "resource", "resourceId", "application", "jobName", "permission", "outcome", "from"], PAGE = 50;
const ABOUT = ["job", "schedule", "trigger", "backfill", "group", "calendar", "commandPrefixImageMapping", "application", "alarm", "silence", "notification", "token", "session", "export", "erasure", "backup", "audit", "request"];
const FIELDS = [
  { name: "principal", label: "Who", placeholder: "anybody" }, { name: "resource", label: "About", options: [["", "anything"], ...ABOUT.map((each) => [each, each])] },
  { name: "application", label: "Application", placeholder: "any" }, { name: "jobName", label: "Job", placeholder: "any" }, { name: "resourceId", label: "Its id", placeholder: "any" },
  { name: "outcome", label: "Ended", options: [["", "either way"], ["done", "done"], ["refused", "refused"]] }, { name: "from", label: "When", options: SPANS },
];
let chosen = {}, records = null, cursor = null, wrong = null, isBusy = false, redraw = () => {}, asked = 0;

export const title = () => "Audit trail";

export function enter(draw) {
  redraw = draw;
  records = null;
  load();
}

async function load(more = null) {
  const mine = ++asked;
  chosen = filters(NAMES);
  const { ignored, ...query } = chosen;
  isBusy = true;
  try {
    const found = await ask("audit", { ...query, from: timeOf(chosen.from, now()), limit: PAGE, cursor: more });
    if (mine !== asked) return;
    records = more ? [...records, ...found.records] : found.records;
    [cursor, wrong] = [found.nextCursor, null];
  } catch (error) { if (mine === asked) wrong = error; }
  isBusy = false;
  redraw();
}

const what = (each) => html`${each.outcome === "refused" ? html`<span class="badge failed">${glyph("failed")}refused</span> ` : nothing}<b>${each.operation}</b>${each.count > 1 ? html` <span class="count">×${number(each.count)}</span>` : nothing}`;

const row = (each) => html`<tr data-row><td>${time(ms(each.at))}</td><td class="cell-name"><bdi>${each.principal}</bdi><span class="under">${each.proof}${each.address ? html`, <bdi>${each.address}</bdi>` : nothing}</span></td>
  <td>${what(each)}<span class="under">${each.permission}</span></td><td class="cell-why">${each.jobName ? jobLink(each) : nothing} ${each.resource === "job" ? nothing : html`<span class="faint">${each.resource}</span> <code><bdi>${each.resourceId}</bdi></code>`}</td>
  <td class="cell-why"><details class="note-details"><summary>${each.changes ? changedFields(each.changes) : "details"}</summary>${changes(each.changes)}<span class="under">record <code>${each.auditId}</code>, request <code>${each.requestId ?? "none"}</code>, place ${number(each.position)} of chain ${each.chain}</span></details></td></tr>`;

const table = () => html`<section class="card" aria-busy=${isBusy}><div class="table-box" tabindex="0" role="region" aria-label="Records"><table class="stacked" data-rows><thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Of what</th><th scope="col">Changed</th></tr></thead>
  <tbody>${repeat(records, (each) => each.auditId, row)}</tbody></table></div>${cursor ? html`<p class="note"><button class="button" ?disabled=${isBusy} @click=${() => load(cursor)}>Older</button></p>` : html`<p class="note">That is all.</p>`}</section>`;

export function view() {
  if (!records && !wrong) return waiting("Audit trail");
  const isFiltered = NAMES.some((name) => chosen[name]);
  return html`<div class="page"><div class="page-head"><h1>Audit trail</h1>${settingTabs("/settings/audit")}</div>${ignoredFilters(chosen.ignored ?? [])}${filterBar(FIELDS, chosen, () => load())}${wrong ? fault(wrong) : nothing}
    ${records?.length ? table() : records ? html`<section class="card">${cursor ? html`<p class="note">Nothing in the newest part of the trail. <button class="button" @click=${() => load(cursor)}>Look further back</button></p>` : isFiltered ? empty("No record fits", "Take a filter away, or choose a longer time.") : empty("Nobody has changed anything yet", "Each change by the interface, the command line or a page appears here:", "clickclock audit list")}</section>` : nothing}</div>`;
}
