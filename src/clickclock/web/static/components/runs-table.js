// A table of triggers. Rows are keyed, and a row that changes stays where it is.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { to } from "../core/address.js";
import { badge, isOver, why } from "../core/states.js";
import { ms, now, span } from "../core/time.js";
import { jobName, time } from "./parts.js";

const KINDS = { manual: "by hand", schedule: "schedule", backfill: "backfill", dependency: "after another" };
export const kindWord = (kind) => KINDS[kind] ?? kind;
const took = (each) => each.durationMs ?? (each.startedAt ? (ms(each.finishedAt) ?? (isOver(each.state) ? ms(each.startedAt) : now())) - ms(each.startedAt) : null);

const row = (each, withJob, picks) => html`<tr data-row class=${picks?.ids.has(each.triggerId) ? "is-chosen" : ""}>${picks ? html`<td class="pick"><input type="checkbox" data-choose .checked=${live(picks.ids.has(each.triggerId))} @change=${() => picks.toggle(each.triggerId)} aria-label="Choose the run of ${each.application}/${each.jobName}, ${each.state}"></td>` : nothing}<td><a href=${to("/runs", each.triggerId)} aria-label="${each.application}/${each.jobName}, ${each.state}">${badge(each.state)}</a></td>
  ${withJob ? html`<td class="cell-name"><a href=${to("/jobs", each.application, each.jobName)}>${jobName(each)}</a></td>` : nothing}
  <td>${time(ms(each.dueTime ?? each.queuedAt))}</td><td class="num wide-only">${span(each.lagMs)}</td><td class="num">${span(took(each))}</td>
  <td class="wide-only faint">${kindWord(each.kind)}</td><td class="wide-only num">${each.attempt > 1 ? `${each.attempt} of ${each.maxAttempts}` : nothing}</td>
  <td class="cell-why">${why(each) || nothing}</td></tr>`;

/** `picks`: `{ ids, toggle(id) }`, where rows can be chosen. */
export const runsTable = (triggers, { withJob = true, label = "Runs", picks = null } = {}) => html`<div class="table-box" tabindex="0" role="region" aria-label=${label}><table class="stacked" data-rows>
  <thead><tr>${picks ? html`<td class="pick"></td>` : nothing}<th scope="col">State</th>${withJob ? html`<th scope="col">Job</th>` : nothing}<th scope="col">Due</th><th scope="col" class="num wide-only">Late by</th><th scope="col" class="num">Ran</th>
    <th scope="col" class="wide-only">Kind</th><th scope="col" class="wide-only num">Attempt</th><th scope="col">Why</th></tr></thead>
  <tbody>${repeat(triggers, (each) => each.triggerId, (each) => row(each, withJob, picks))}</tbody></table></div>`;
