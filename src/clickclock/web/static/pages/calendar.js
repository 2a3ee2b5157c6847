// The next seven days: how much comes in each hour, what comes together, and when nothing comes for longest.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { filterBar } from "../components/filter-bar.js";
import { heat } from "../components/heat.js";
import { card, counted, empty, fault, figure, ignoredFilters, jobLink, number, time, waiting } from "../components/parts.js";
import { filters, to, withChosen } from "../core/address.js";
import { ask } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { glyph, SKIPS } from "../core/states.js";
import { currentZone, day, full, iso, minute, ms, now, span } from "../core/time.js";

const HOUR = 3_600_000, MINUTE = 60_000, DAYS = 7, ANSWERS_MAX = 40, LISTED = 200, TOGETHER_MIN = 3;
const NAMES = ["application", "jobName", "groupName", "hour"];
const FIELDS = [{ name: "application", label: "Application", placeholder: "any" }, { name: "jobName", label: "Job", placeholder: "any" }, { name: "groupName", label: "Group", placeholder: "any" }];
let chosen = {}, times = [], lanes = new Map(), since = 0, reach = 0, done = false, wrong = null, slots = null, redraw = () => {}, asked = 0;

export const title = () => "Calendar";

export function enter(draw) {
  redraw = draw;
  [times, lanes, reach, done, wrong] = [[], new Map(), 0, false, null];
  load();
  ask("cluster").then((answer) => { slots = answer.cluster.clusters.reduce((sum, each) => sum + each.capacity, 0); draw(); }, () => {});
  return reloadOn(({ type }) => /\.(schedule|job|group|calendar)\./.test(type), load);
}

/** An answer goes as far as the service computes at once; the next one goes on from there. */
async function load() {
  const mine = ++asked, { hour, ignored, ...query } = (chosen = filters(NAMES)), begin = now(), end = iso(begin + DAYS * 24 * HOUR);
  const found = [], known = new Map();
  try {
    for (let from = null, answers = 0; answers < ANSWERS_MAX; answers++) {
      const { forecast } = await ask("forecast", { ...query, from, to: end });
      if (mine !== asked) return;
      const fresh = [];
      for (const lane of forecast.lanes) {
        known.set(lane.scheduleId, { ...lane, remarks: [...(known.get(lane.scheduleId)?.remarks ?? []), ...lane.remarks] });
        for (const at of lane.timesMs) fresh.push({ at, lane: lane.scheduleId });
      }
      found.push(...fresh.sort((a, b) => a.at - b.at));   // an answer has all before the next one begins
      [times, lanes, since, reach, wrong] = [found, known, begin, ms(forecast.to), null];
      done = !forecast.truncated;
      redraw();
      if (done) break;
      from = forecast.to;
    }
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

const countedBy = (width) => {
  const counts = new Map();
  for (const { at } of times) { const start = Math.floor(at / width) * width; counts.set(start, (counts.get(start) ?? 0) + 1); }
  return counts;
};

function grid(counts) {
  const top = Math.max(1, ...counts.values()), low = Math.min(top, ...[...counts].filter(([at]) => at >= since && at + HOUR <= reach).map(([, count]) => count)), days = new Map();
  const shade = (count) => (count ? 0.2 + (0.8 * Math.max(0, count - low)) / Math.max(top - low, top / 10, 1) : 0);   // what comes every minute is the ground, and not the figure
  for (let at = Math.floor(since / HOUR) * HOUR; at < since + DAYS * 24 * HOUR; at += HOUR) days.set(day(at), [...(days.get(day(at)) ?? []), at]);
  const longest = Math.max(24, ...[...days.values()].map((hours) => hours.length));
  const first = [...days.keys()].at(0), last = [...days.keys()].at(-1), whole = [...days.values()].find((hours) => hours.length === longest) ?? [];
  const rows = [...days].map(([name, hours]) => {
    const cells = hours.map((at) => (at >= reach ? null : { share: shade(counts.get(at)), text: counts.get(at) ?? "", label: `${full(at)}: ${counted(counts.get(at) ?? 0, "time")}`, href: withChosen({ hour: iso(at) }), isChosen: ms(chosen.hour) === at }));
    return { head: html`${name}${hours.length !== 24 && name !== first && name !== last ? html` <span class="faint">${hours.length} h</span>` : nothing}`, cells: name === first ? [...Array(Math.max(0, longest - cells.length)).fill(null), ...cells] : cells };
  });
  return heat({ label: "Times by day and hour", corner: currentZone(), columns: Array.from({ length: longest }, (_, at) => (whole[at] ? minute(whole[at]).slice(0, 2) : "")), rows });
}

const inHour = () => {
  const from = ms(chosen.hour);
  return times.filter(({ at }) => at >= from && at < from + HOUR);
};
const item = ({ at, lane }) => html`<tr data-row><td>${time(at)}</td><td class="cell-name">${jobLink(lanes.get(lane))}</td><td><a href=${to("/schedules", lane)}>${lanes.get(lane).scheduleName}</a></td></tr>`;

function hourCard() {
  if (!chosen.hour) return nothing;
  const found = inHour();
  return card("hour", full(ms(chosen.hour)), found.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="Times of the hour"><table class="stacked" data-rows><thead><tr><th scope="col">Due</th><th scope="col">Job</th><th scope="col">Schedule</th></tr></thead>
    <tbody>${repeat(found.slice(0, LISTED), (each) => `${each.at} ${each.lane}`, item)}</tbody></table></div>${found.length > LISTED ? html`<p class="note">And ${number(found.length - LISTED)} more.</p>` : nothing}`
    : html`<p class="note">Nothing comes in this hour.</p>`, { count: found.length, more: html`<a class="more" href=${withChosen({ hour: null })}>Close</a>` });
}

function together(counts) {
  const most = [...counts].filter(([, count]) => count >= TOGETHER_MIN).sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 6);
  return card("together", "Most at once", most.length ? html`<ul class="heat-facts">${most.map(([at, count]) => html`<li>${slots && count > slots ? glyph("failed", "more than there are slots") : glyph("queued")} <a href=${withChosen({ hour: iso(Math.floor(at / HOUR) * HOUR) })}>${full(at)}</a>: <b>${number(count)}</b> in one minute${slots && count > slots ? `, and ${number(slots)} slots` : ""}</li>`)}</ul>` : html`<p class="note">Never ${TOGETHER_MIN} in one minute.</p>`);
}

function remarks() {
  const found = [...lanes.values()].flatMap((lane) => lane.remarks.map((each) => ({ ...each, lane }))).sort((a, b) => ms(a.time) - ms(b.time)).slice(0, 12);
  const still = [...lanes.values()].filter((lane) => lane.skipReason);
  if (!found.length && !still.length) return nothing;
  return card("remarks", "Not as usual", html`<ul class="heat-facts">${found.map((each) => html`<li>${glyph(each.skipReason ? "skipped" : "queued")} ${time(ms(each.time))} ${jobLink(each.lane)}: ${each.note ?? SKIPS[each.skipReason] ?? each.skipReason}</li>`)}
    ${still.map((lane) => html`<li>${glyph("skipped")} ${jobLink(lane)} does not run: ${SKIPS[lane.skipReason] ?? lane.skipReason}</li>`)}</ul>`);
}

function figures(hours) {
  const [busiest, most] = [...hours].reduce((best, each) => (each[1] > best[1] ? each : best), [0, 0]);
  let gap = [since, times[0]?.at ?? reach];
  times.forEach(({ at }, i) => { const next = times[i + 1]?.at ?? reach; if (next - at > gap[1] - gap[0]) gap = [at, next]; });
  return html`<div class="figures">${figure("Times to come", number(times.length), `${counted(lanes.size, "schedule")}, until ${full(reach)}`)}
    ${figure("Busiest hour", number(most), most ? full(busiest) : "nothing comes")}${figure("Longest gap", span(gap[1] - gap[0]), `from ${full(gap[0])}`)}</div>`;
}

export function view() {
  chosen = filters(NAMES);
  if (!reach && !wrong) return waiting("Calendar");
  const hours = countedBy(HOUR);
  return html`<div class="page"><div class="page-head"><h1>Calendar</h1>${done || wrong ? nothing : html`<span class="faint" role="status">reading on …</span>`}</div>${ignoredFilters(chosen.ignored)}${filterBar(FIELDS, chosen, load)}${wrong ? fault(wrong) : nothing}
    ${!reach ? nothing : !lanes.size ? html`<section class="card">${empty("Nothing comes in the next 7 days", "A schedule says when a job runs:", 'clickclock schedule create APPLICATION NAME --expression "30 2 * * *"')}</section>`
      : html`${figures(hours)}<div class="columns"><div class="column">${card("week", "The next 7 days, hour by hour", grid(hours), { note: `hours of ${currentZone()}` })}${hourCard()}</div><div class="column side">${together(countedBy(MINUTE))}${remarks()}</div></div>`}</div>`;
}
