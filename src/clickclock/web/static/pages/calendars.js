// Calendars of business days: which days count, and how many schedules go by each.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { counted, empty, fault, ignoredFilters, number, waiting } from "../components/parts.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { Turns } from "../core/turns.js";

const ALL = 7, SHOWN = 8;
let calendars = null, wrong = null, redraw = () => {};
const turns = new Turns();

export const title = () => "Calendars";

export function enter(draw) {
  redraw = draw;
  calendars = null;
  turns.begin();
  load();
  return reloadOn(({ type }) => /\.(calendar|schedule)\./.test(type), load);
}

async function load() {
  const mine = turns.next();
  try {
    const found = await ask("calendar", { limit: 1000 });
    if (turns.take(mine)) [calendars, wrong] = [found.calendars, null];
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

const dates = (list) => (list.length ? html`${list.slice(0, SHOWN).join(", ")}${list.length > SHOWN ? html` <span class="faint">and ${number(list.length - SHOWN)} more</span>` : nothing}` : html`<span class="faint">none</span>`);
const days = (each) => (each.businessDays.length === ALL ? "every day" : each.businessDays.map((name) => name.slice(0, 3)).join(", ") || "none");

const row = (each) => html`<tr data-row><td class="cell-name"><bdi>${each.calendarName}</bdi>${each.description ? html` <span class="faint">${each.description}</span>` : nothing}</td><td>${days(each)}</td>
  <td class="cell-why"><span class="narrow-only">but not </span>${dates(each.excludeDates)}</td><td class="cell-why"><span class="narrow-only">and also </span>${dates(each.includeDates)}</td><td>${each.timeZone ?? html`<span class="faint">each schedule's own</span>`}</td><td class="num">${counted(each.schedules, "schedule")}</td></tr>`;

export function view() {
  if (!calendars && !wrong) return waiting("Calendars");
  return html`<div class="page"><div class="page-head"><h1>Calendars</h1></div>${ignoredFilters(filters([]).ignored)}${wrong ? fault(wrong) : nothing}
    ${calendars?.length ? html`<section class="card"><div class="table-box" tabindex="0" role="region" aria-label="Calendars"><table class="stacked" data-rows><thead><tr><th scope="col">Calendar</th><th scope="col">Business days</th><th scope="col">But not</th><th scope="col">And also</th><th scope="col">Zone</th><th scope="col" class="num">Used by</th></tr></thead>
      <tbody>${repeat(calendars, (each) => each.calendarName, row)}</tbody></table></div></section>`
      : calendars ? html`<section class="card">${empty("There is no calendar", "Schedules that go by a calendar leave out holidays and weekends:", "clickclock calendar create germany --exclude-date 2026-12-25")}</section>` : nothing}</div>`;
}
