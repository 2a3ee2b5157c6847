// Every change as it was noted: who looks for what happened when finds it here, and new ones wait behind a button.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { filterBar } from "../components/filter-bar.js";
import { empty, fault, ignoredFilters, jobLink, number, time, waiting } from "../components/parts.js";
import { filters, to } from "../core/address.js";
import { ask } from "../core/api.js";
import { onChange, withChanges } from "../core/live.js";
import { badge, STATES } from "../core/states.js";
import { ms } from "../core/time.js";

const NAMES = ["type", "application", "jobName", "groupName"], PAGE = 100, PREFIX = "clickclock.";
const ABOUT = ["trigger", "attempt", "alarm", "job", "schedule", "group", "calendar", "backfill", "silence"];
const FIELDS = [
  { name: "type", label: "About", options: [["", "anything"], ...ABOUT.map((each) => [each, each])] },
  { name: "application", label: "Application", placeholder: "any" }, { name: "jobName", label: "Job", placeholder: "any" }, { name: "groupName", label: "Group", placeholder: "any" },
];
let chosen = {}, events = null, cursor = null, wrong = null, fresh = 0, redraw = () => {}, asked = 0;

export const title = () => "Events";

export function enter(draw) {
  redraw = draw;
  events = null;
  load();
  return onChange(({ change, missed }) => {
    if (missed) load();
    if (!change || !fits(change)) return;
    fresh += 1;
    draw();
  });
}

const fits = ({ type, data }) => type.startsWith(PREFIX + (chosen.type ?? "")) && ["application", "jobName", "groupName"].every((name) => !chosen[name] || chosen[name] === data?.[name]);

async function load(more = null) {
  const mine = ++asked;
  chosen = filters(NAMES);
  try {
    const { ignored, ...query } = chosen, [found, heard] = await withChanges(ask("events", { ...query, follow: false, limit: PAGE, cursor: more }));
    if (mine !== asked) return;
    events = more ? [...events, ...found.events] : found.events;
    [cursor, wrong] = [found.nextCursor, null];
    if (!more) fresh = heard.filter((change) => fits(change) && !events.some((each) => each.id === change.id)).length;
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

function row({ id, type, time: at, data, subject }) {
  const [, about, what] = type.split("."), reason = data?.skipReason ?? data?.stopReason ?? data?.kind ?? "";
  return html`<tr data-row><td>${time(ms(at))}</td><td>${about}</td><td>${STATES[what] ? badge(what) : what}</td>
    <td class="cell-name">${data?.jobName ? jobLink(data) : data?.groupName ?? data?.application ?? nothing}</td>
    <td class="cell-why">${data?.triggerId ? html`<a class="inline" href=${to("/runs", data.triggerId)}>the run</a> ` : subject && about !== "job" ? html`<code>${subject}</code> ` : nothing}${STATES[what] ? reason : nothing}</td><td class="num wide-only faint">${id}</td></tr>`;
}

export function view() {
  if (!events && !wrong) return waiting("Events");
  return html`<div class="page"><div class="page-head"><h1>Events</h1>${fresh ? html`<button class="button primary" @click=${() => load()}>${number(fresh)} new</button>` : nothing}</div>
    ${ignoredFilters(chosen.ignored ?? [])}${filterBar(FIELDS, chosen, () => load())}${wrong ? fault(wrong) : nothing}
    ${events?.length ? html`<section class="card"><div class="table-box" tabindex="0" role="region" aria-label="Events"><table class="stacked" data-rows>
      <thead><tr><th scope="col">When</th><th scope="col">About</th><th scope="col">What</th><th scope="col">Whose</th><th scope="col">Which</th><th scope="col" class="num wide-only">Id</th></tr></thead>
      <tbody>${repeat(events, (each) => each.id, row)}</tbody></table></div>${cursor ? html`<p class="note"><button class="button" @click=${() => load(cursor)}>Older</button></p>` : nothing}</section>`
      : events ? html`<section class="card">${empty("No event fits", "Events are kept for a day. Take a filter away.")}</section>` : nothing}</div>`;
}
