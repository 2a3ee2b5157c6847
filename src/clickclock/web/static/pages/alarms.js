// What did not run as it should, who takes it on, and what is silenced.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { acknowledge, silence } from "../components/actions.js";
import { filterBar } from "../components/filter-bar.js";
import { card, empty, fault, ignoredFilters, jobLink, jobName, number, time, waiting } from "../components/parts.js";
import { say } from "../components/toast.js";
import { filters, to } from "../core/address.js";
import { ask, change } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { may } from "../core/permissions.js";
import { glyph } from "../core/states.js";
import { ms, relative } from "../core/time.js";

const NAMES = ["isOpen", "kind", "application", "jobName", "groupName"], PAGE = 50;
const KINDS = { missed: ["did not run", "lost"], longRun: ["runs long", "timedOut"], failure: ["failed", "failed"], skip: ["was skipped", "skipped"] };
const FIELDS = [
  { name: "isOpen", label: "Show", options: [["", "all"], ["true", "open"], ["false", "over"]] },
  { name: "kind", label: "Kind", options: [["", "any"], ...Object.entries(KINDS).map(([kind, [word]]) => [kind, word])] },
  { name: "application", label: "Application", placeholder: "any" }, { name: "jobName", label: "Job", placeholder: "any" }, { name: "groupName", label: "Group", placeholder: "any" },
];
let chosen = {}, alarms = null, silences = [], cursor = null, wrong = null, redraw = () => {}, asked = 0;

export const title = () => "Alarms";

export function enter(draw) {
  redraw = draw;
  alarms = null;
  load();
  return reloadOn(({ type }) => /\.(alarm|silence)\./.test(type), load);
}

async function load(more = null) {
  const mine = ++asked;
  chosen = filters(NAMES);
  try {
    const { ignored, ...query } = chosen;
    const [found, held] = await Promise.all([ask("alarm", { ...query, limit: PAGE, cursor: more }), ask("silence")]);
    if (mine !== asked) return;
    alarms = more ? [...alarms, ...found.alarms] : found.alarms;
    [cursor, silences, wrong] = [found.nextCursor, held.silences, null];
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

const standing = (alarm) => {
  if (alarm.resolvedAt) return html`over ${time(ms(alarm.resolvedAt))} <span class="faint">${alarm.resolution ?? ""}</span>`;
  if (alarm.acknowledgedAt) return html`${alarm.acknowledgedBy} takes care of it, since ${time(ms(alarm.acknowledgedAt))} <span class="faint">${alarm.note ?? ""}</span>`;
  return html`<b>open</b>`;
};

function row(alarm) {
  const [word, tone] = KINDS[alarm.kind] ?? [alarm.kind, "failed"];
  return html`<tr data-row><td><span class="badge ${tone}">${glyph(tone)}${word}</span></td><td class="cell-name">${jobLink(alarm)}</td>
    <td class="cell-why">${alarm.message} ${alarm.triggerId ? html`<a class="inline" href=${to("/runs", alarm.triggerId)}>the run</a>` : nothing}</td>
    <td class="num wide-only">${number(alarm.count)}</td><td>${time(ms(alarm.openedAt))}</td><td class="cell-broad">${standing(alarm)}</td>
    <td class="row-actions cell-broad">${alarm.resolvedAt ? nothing : html`${may("alarm.acknowledge", alarm.application) ? html`<button class="button small" ?disabled=${!!alarm.acknowledgedAt} @click=${() => acknowledge(alarm, load)}>Acknowledge …</button>` : nothing}
      ${may("silence.write", alarm.application) ? html`<button class="button small" @click=${() => silence(alarm, load)}>Silence …</button>` : nothing}`}</td></tr>`;
}

const table = () => html`<section class="card"><div class="table-box" tabindex="0" role="region" aria-label="Alarms"><table class="stacked" data-rows>
  <thead><tr><th scope="col">What</th><th scope="col">Job</th><th scope="col">Message</th><th scope="col" class="num wide-only">Times</th><th scope="col">Since</th><th scope="col">Stands</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
  <tbody>${repeat(alarms, (each) => each.alarmId, row)}</tbody></table></div>${cursor ? html`<p class="note"><button class="button" @click=${() => load(cursor)}>Older</button></p>` : nothing}</section>`;

async function end({ application, jobName: name, groupName }) {
  try {
    await change("DELETE", "silence", undefined, { query: { application, jobName: name, groupName } });
    say("The silence is over.");
    load();
  } catch (error) { wrong = error; redraw(); }
}

const held = () => (silences.length ? card("silences", "Silenced", html`<ul class="reasons">${silences.map((each) => html`<li>${glyph("cancelled")}<span>${each.groupName ? html`the jobs of ${each.groupName}` : each.jobName ? jobName(each) : html`all jobs of ${each.application}`},
    until ${time(ms(each.until))} <span class="faint">${relative(ms(each.until))}, by ${each.silencedBy}${each.note ? `: ${each.note}` : ""}</span>${may("silence.write", each.application) ? html` <button class="button small" @click=${() => end(each)}>End</button>` : nothing}</span></li>`)}</ul>`, { count: silences.length }) : nothing);

export function view() {
  if (!alarms && !wrong) return waiting("Alarms");
  return html`<div class="page"><div class="page-head"><h1>Alarms</h1></div>${ignoredFilters(chosen.ignored ?? [])}${filterBar(FIELDS, chosen, () => load())}${wrong ? fault(wrong) : nothing}
    ${alarms?.length ? table() : alarms ? html`<section class="card">${NAMES.some((name) => chosen[name]) ? empty("No alarm fits", "Take a filter away.") : empty("No alarm", "Nothing has failed, run long, been skipped or missed. Say who is to be notified when something does, in the job:", '"notifications": {"targets": ["ops"], "on": ["failure", "missed"]}')}</section>` : nothing}
    ${held()}</div>`;
}
