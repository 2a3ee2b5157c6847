// One schedule: what became of its times, what comes, and its form with a preview that moves while it is edited.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { pauseSchedule, remove } from "../components/actions.js";
import { clockDay, dayOfChange } from "../components/clock-day.js";
import { asText } from "../components/definition.js";
import { diff } from "../components/diff.js";
import { card, fault, jobLink, jobOf, time, waiting } from "../components/parts.js";
import { offer } from "../components/offer.js";
import { BLANK, changesOf, draftOf, scheduleForm } from "../components/schedule-form.js";
import { roomFor, strip } from "../components/strip.js";
import { say } from "../components/toast.js";
import { filters, to } from "../core/address.js";
import { ask, change } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { lacks, may } from "../core/permissions.js";
import { go } from "../core/router.js";
import { glyph, SKIPS } from "../core/states.js";
import { currentZone, iso, ms, now, relative } from "../core/time.js";
import { Turns } from "../core/turns.js";

const SETTLE_MS = 250, CELLS = 60, COMING = 10, CHANGES = 2, TIMES_MAX = 1000;
const PREVIEWED = ["kind", "expression", "timeZone", "startAt", "endAt", "calendarName", "dstGapPolicy", "dstFoldPolicy"];
let id = null, of = {}, base = null, etag = null, draft = {}, times = [], preview = null, days = [], wrong = null, refused = null, theirs = null, told = null, room = 40, redraw = () => {}, timer = 0, asked = 0;
const turns = new Turns();

export const title = () => (base ? `Schedule of ${jobOf(base)}` : "New schedule");

export function enter(draw, { scheduleId }) {
  [id, base, draft, times, preview, days, wrong, refused, theirs, told, redraw] = [scheduleId ?? null, null, { ...BLANK, timeZone: currentZone() }, [], null, [], null, null, null, null, draw];
  turns.begin();
  of = filters(["application", "jobName", "expression"]);
  if (of.expression) draft.expression = of.expression;
  if (id) load(); else look();
  const off = id ? reloadOn(({ data }) => data?.scheduleId === id, load) : () => {};
  return () => { off(); clearTimeout(timer); };
}

async function load() {
  const mine = turns.next();
  try {
    const [found, cells] = await Promise.all([ask("schedules", { scheduleId: id }), ask("scheduleTimes", { scheduleId: id, limit: CELLS })]);
    if (!turns.take(mine)) return;
    const [schedule] = found.schedules;
    if (!schedule) throw new Error("There is no such schedule. It may have been deleted.");
    const isTouched = base && Object.keys(changesOf(draft, base)).length;
    times = cells.schedules[0].times.map((each) => ({ ...each, scheduleId: id })).reverse();
    if (!isTouched) { [base, etag] = [schedule, found.etag]; draft = draftOf(schedule); } else if (schedule.version === base.version) base = schedule;
    wrong = null;
    if (!preview) look();
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

const query = (more) => ({ ...Object.fromEntries(PREVIEWED.map((name) => [name, draft[name]])), calendarRule: draft.calendarName ? base?.calendarRule : null, excludeDates: base?.excludeDates?.join(","), ...more });

/** The next changes of a zone's clock: of this year and the next. */
async function clockChanges(timeZone) {
  const year = new Date(now()).getUTCFullYear(), found = await Promise.all([year, year + 1].map((each) => ask("zoneChanges", { timeZone, year: each })));
  return found.flatMap(({ zoneChanges }) => zoneChanges).map(dayOfChange).filter(({ at }) => at > now()).slice(0, CHANGES);
}

/** Ask for the next times, and for those of the days on which the clock is changed. */
async function look() {
  const mine = ++asked;
  if (!draft.expression) { preview = null; redraw(); return; }
  try {
    const found = await ask("schedulePreview", query({ count: COMING }));
    const changes = ["cron", "rrule"].includes(draft.kind) ? await clockChanges(draft.timeZone) : [];
    const each = await Promise.all(changes.map((one) => ask("schedulePreview", query({ from: iso(one.start - 1), count: TIMES_MAX }))));
    if (mine !== asked) return;
    preview = found;
    days = changes.map((one, at) => [{ ...one, timeZone: draft.timeZone }, each[at].times.filter((when) => ms(when.time) < one.end)]);
    refused = null;
  } catch (error) { if (mine === asked) refused = error; }
  redraw();
}

const set = (name) => (event) => {
  draft = { ...draft, [name]: event.target.value.trim() };
  clearTimeout(timer);
  timer = setTimeout(look, SETTLE_MS);
  redraw();
};

async function save(event) {
  event.preventDefault();
  const body = changesOf(draft, base);
  try {
    if (base) {
      const answer = await change("PUT", "schedules", { scheduleId: id, ...body }, { etag });
      [base, etag, theirs] = [answer.schedule, answer.etag, null];
      draft = draftOf(base);
      say("Saved. Nothing starts by the old times any more.");
    } else {
      const { schedule } = await change("POST", "schedules", { application: of.application, jobName: of.jobName, kind: draft.kind, expression: draft.expression, timeZone: draft.timeZone, ...body });
      go(to("/schedules", schedule.scheduleId));
      say("The schedule is made.");
    }
    refused = null;
  } catch (error) {
    refused = error;
    if (error.code === "staleVersion") {
      const found = await ask("schedules", { scheduleId: id });
      theirs = { before: asText(base), after: asText(found.schedules[0]), by: found.schedules[0].updatedBy };
      [base, etag] = [found.schedules[0], found.etag];
    }
  }
  redraw();
}

const drop = () => remove({ title: "Delete the schedule", name: base.jobName, words: `${jobOf(base)} is no longer started by “${base.expression}”. What it started stays in the history.`,
  act: async () => { await change("DELETE", "schedules", undefined, { query: { scheduleId: id }, etag }); go(to("/jobs", base.application, base.jobName)); } });

function coming() {
  if (!draft.expression) return html`<p class="note">Write when it is to run, and its next times appear here.</p>`;
  if (!preview) return refused ? nothing : html`<p class="note">Looking …</p>`;
  return html`${preview.reading?.length ? html`<p class="under pad">${preview.reading.join(" ")}</p>` : nothing}
    ${preview.times.length ? html`<ol class="coming">${preview.times.map((each) => html`<li class=${each.skipReason ? "faint" : ""}>${time(ms(each.time))} <span class="faint">${relative(ms(each.time))}</span> ${draft.timeZone === currentZone() ? nothing : html`<span class="faint">${each.localTime.slice(11, 16)} in ${draft.timeZone}</span>`}${each.note || each.skipReason ? html`<span class="under">${glyph(each.skipReason ? "skipped" : "queued")} ${each.note ?? SKIPS[each.skipReason] ?? each.skipReason}</span>` : nothing}</li>`)}</ol>` : html`<p class="note">It has no time to come.</p>`}`;
}

const clockDays = () => (days.length ? card("changes", "When the clock is changed", html`<div class="card-body">${days.map(([one, when]) => clockDay(one, when, one.timeZone))}</div>`, { note: days[0][0].timeZone }) : nothing);

function form() {
  const body = changesOf(draft, base), isChanged = Object.keys(body).length > 0, faults = new Map((refused?.faults ?? []).map((each) => [each.field, each.message]));
  const mayWrite = may("schedule.write", base?.application ?? (of.application || null));
  return card("form", base ? "Definition" : "What and when", html`<form class="card-body" @submit=${save}>
    ${theirs ? html`<div class="banner" role="alert"><p>Somebody changed it meanwhile, and nothing of theirs was overwritten. ${theirs.by ? html`It was <b>${theirs.by}</b>. ` : nothing}This is what they changed:</p>${diff(theirs.before, theirs.after)}<p>Your form still has what you wrote. Saving again puts only your fields over theirs.</p></div>` : nothing}
    ${scheduleForm(draft, set, faults)}
    ${refused && refused.code !== "staleVersion" ? fault(refused) : nothing}
    ${base && isChanged ? html`<p class="under">What will change:</p>${diff(asText(base), asText({ ...base, ...body }))}` : nothing}
    ${mayWrite ? nothing : html`<p class="under">${lacks("schedule.write", base?.application ?? of.application)} You can try times here, and save nothing.</p>`}
    <div class="dialog-buttons">${base && isChanged ? html`<button type="button" class="button" @click=${() => { draft = draftOf(base); theirs = null; look(); }}>Undo all</button>` : nothing}<button class="button primary" ?disabled=${!mayWrite || (base ? !isChanged : !draft.expression || !of.jobName)}>${base ? "Save" : "Create"}</button></div></form>`);
}

const head = () => html`<div class="page-head"><h1>${base ? html`Schedule of ${jobLink(base)}` : of.jobName ? html`New schedule of ${jobLink(of)}` : "New schedule"}</h1>
  ${base?.paused ? html`<span class="badge cancelled">${glyph("cancelled")}paused: ${base.pauseReason ?? "nobody said why"}</span>` : nothing}
  ${base ? offer([{ word: base.paused ? "Resume" : "Pause …", needs: "schedule.pause", act: () => pauseSchedule(base, () => load()) }, { word: "Delete …", needs: "schedule.write", act: drop, tone: "danger" }], base.application) : nothing}</div>
  ${base?.managedBy ? html`<p class="banner">It comes from the files ${base.managedBy}. An edit here is undone by the next apply.</p>` : nothing}`;

export function view() {
  const cells = document.querySelector(".cells");
  if (cells) room = roomFor(cells.clientWidth);
  if (wrong && !base) return html`<div class="page"><h1>Schedule</h1>${fault(wrong)}</div>`;
  if (id && !base) return waiting("Schedule");
  return html`<div class="page">${head()}${!id && !of.jobName ? html`<p class="banner">Say for which job: open the job's page and choose “Add a schedule”.</p>` : nothing}
    ${base ? card("times", "Every time, and what became of it", html`<div class="card-body">${strip(times.slice(-room), { label: jobOf(base), told, tell: (each) => { told = each; redraw(); } })}</div>`) : nothing}
    <div class="columns halves"><div class="column">${form()}</div><div class="column">${card("coming", "Next times", coming(), { note: "without jitter" })}${clockDays()}</div></div></div>`;
}
