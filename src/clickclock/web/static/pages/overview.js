// The overview: what is wrong, what runs, what comes, and what became of each time.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { guard } from "../vendor/lit-html/directives/guard.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { areWanted, firstSteps } from "../components/first-steps.js";
import { lanes, rowsOf } from "../components/lanes.js";
import { card, fault, figure, jobName, jobOf, counted, number, percent, prose, time, waiting } from "../components/parts.js";
import { isRunning, running } from "../components/running.js";
import { roomFor, strip } from "../components/strip.js";
import { to } from "../core/address.js";
import { onChange } from "../core/live.js";
import { glyph, isOver, wordOf } from "../core/states.js";
import { clock, countdown, currentZone, ms, now, span } from "../core/time.js";
import { Overview } from "./overview-state.js";

const HOUR = 3_600_000, LANES_MAX = 24, LANES_EVERY_MS = 2000, EVERY_MS = 60_000, PAGE_MAX = 1600, AGAIN_MS = 3000;
const ALARMS = { missed: "did not run", longRun: "runs long", failure: "failed", skip: "was skipped" };
let known = new Overview(), told = null, room = 24, redraw = () => {};

export const title = () => "Overview";

export function enter(draw) {
  redraw = draw;
  told = null;
  known = new Overview();
  let isHere = true;
  let again = 0;
  const load = async () => {
    await known.load(now(), draw, roomFor(Math.min(innerWidth, PAGE_MAX)));
    clearTimeout(again);
    if (isHere) again = setTimeout(() => (document.hidden ? null : load()), known.isAway ? AGAIN_MS : EVERY_MS);
  };
  load();
  const off = onChange(({ change, missed }) => {
    if (missed) load();
    else if (change && known.take(change)) draw();
  });
  const beat = setInterval(() => document.hidden || draw(), 1000);
  const shown = () => document.hidden || load();
  document.addEventListener("visibilitychange", shown);
  return () => { isHere = false; off(); clearInterval(beat); clearTimeout(again); document.removeEventListener("visibilitychange", shown); };
}

/** A part, once its questions are answered; before that its room, and if one failed why, in its own place. What was known stays. */
function part(questions, body) {
  const failed = questions.filter((name) => known.faults.has(name)).map((name) => known.faults.get(name));
  const sentences = known.isAway ? [] : [...new Map(failed.map((error) => [error.message, error])).values()].map((error) => html`<div class="pad">${fault(error)}</div>`);
  return html`${sentences}${questions.every((name) => known.answered.has(name)) ? body() : failed.length ? nothing : html`<p class="note" aria-busy="true">The service has not answered this yet.</p>`}`;
}
const figureOf = (title, questions, body) => (questions.every((name) => known.answered.has(name)) ? body()
  : figure(title, "–", questions.map((name) => known.faults.get(name)?.message).find(Boolean) ?? "not answered yet"));

function bars(stat, at) {
  const by = new Map(stat.buckets.map((each) => [ms(each.from) - (ms(each.from) % HOUR), each])), first = at - (at % HOUR) - 23 * HOUR;
  const all = Array.from({ length: 24 }, (_, i) => by.get(first + i * HOUR)), top = Math.max(1, ...all.map((of) => of?.totalTriggers ?? 0));
  return html`<svg class="bars" viewBox="0 0 120 32" preserveAspectRatio="none" role="img" aria-label="Runs of each of the last 24 hours">${all.map((of, i) => {
    const height = of ? Math.max(1.5, (of.totalTriggers / top) * 32) : 0.75, bad = of ? ((of.failed + of.timedOut + of.lost) / top) * 32 : 0;
    return svg`<rect class="bar" x=${i * 5} width="4" y=${32 - height} height=${height} rx=".6" /><rect class="bar bad" x=${i * 5} width="4" y=${32 - bad} height=${bad} rx=".6" />`;
  })}</svg>`;
}

function figures(at) {
  const { next, totals, stat } = known, all = [...known.triggers.values()], soon = next(at);
  return html`<div class="figures">
    ${figureOf("Next", ["forecast"], () => figure("Next", soon ? countdown(soon.at - at) : "–", soon ? html`${jobOf(soon.of)} at ${clock(soon.at)}` : "nothing is planned within the hour"))}
    ${figureOf("Running", ["jobTrigger", "cluster"], () => figure("Running", number(all.filter(isRunning).length), `${number(all.filter((each) => each.state === "queued").length)} waiting · ${counted(totals.jobs, "job")} · ${counted(totals.schedules, "schedule")}`))}
    ${figureOf("Late by", ["jobStat"], () => figure("Late by", span(stat.lagMs.p95), stat.lagMs.p95 == null ? "nothing started in the last 24 h" : `95 of 100 runs or less; half by ${span(stat.lagMs.p50)}`))}
    ${figureOf("Succeeded, 24 h", ["jobStat"], () => html`<div class="figure wide"><h2>Succeeded, 24 h</h2><div class="with-bars"><div><p class="big">${percent(stat.successRate)}</p>
      <p class="under">${counted(stat.totalTriggers, "run")} · ${number(stat.failed + stat.timedOut + stat.lost)} failed · ${number(stat.skipped)} skipped</p></div>${bars(stat, at)}</div></div>`)}
  </div>`;
}

/** What is wrong, worst first, each with what to do or where to look. */
/** @returns {{ state: string, what: unknown, then: unknown, link?: string }[]} */
function wrong() {
  return [
    ...known.findings.map((each) => ({ state: each.severity === "fail" ? "failed" : "timedOut", what: prose(each.message), then: prose(each.remedy) })),
    ...known.alarms.map((each) => ({ state: each.kind === "skip" ? "skipped" : "failed", link: each.triggerId ? to("/runs", each.triggerId) : to("/jobs", each.application, each.jobName),
      what: html`${jobName(each)} ${ALARMS[each.kind] ?? ""}`, then: html`${each.message} ${each.count > 1 ? `${each.count} times since` : "At"} ${time(ms(each.openedAt))}` })),
    ...known.schedules.filter((each) => each.paused).map((each) => ({ state: "cancelled", link: to("/schedules", each.scheduleId), what: html`${jobName(each)} is paused`, then: each.pauseReason ?? "Nobody said why." })),
  ];
}

function attention() {
  const said = wrong(), all = ["cluster", "alarm", "schedules"], isKnown = all.every((name) => known.answered.has(name) && !known.faults.has(name));
  return card("attention", "Needs a look", html`${isKnown ? nothing : part(all, () => nothing)}${said.length
    ? html`<ul class="attention">${said.map(({ state, what, then, link }) => html`<li>${glyph(state)}<div><p>${link ? html`<a href=${link}>${what}</a>` : what}</p><p class="under">${then}</p></div></li>`)}</ul>`
    : isKnown ? html`<p class="note">${glyph("succeeded")} All is well: no open alarm, nothing overdue, nothing stuck.</p>` : nothing}`, { count: said.length });
}

function ended() {
  const last = [...known.triggers.values()].filter((each) => isOver(each.state)).sort((a, b) => ms(b.finishedAt ?? b.dueTime) - ms(a.finishedAt ?? a.dueTime)).slice(0, 9);
  return card("ended", "Just ended", part(["triggerMarks"], () => last.length ? html`<ol class="ended">${repeat(last, (each) => each.triggerId, (each) => html`<li><a href=${to("/runs", each.triggerId)}>${glyph(each.state, wordOf(each.state))}${jobName(each)}
      <span class="took">${each.state === "skipped" ? "skipped" : span(each.startedAt ? ms(each.finishedAt) - ms(each.startedAt) : null)}</span><time>${clock(ms(each.finishedAt ?? each.dueTime))}</time></a></li>`)}</ol>`
    : html`<p class="note">Nothing ended in the last half hour.</p>`));
}

const legend = () => html`<span class="key"><i class="k-done"></i>ran <i class="k-run"></i>runs <i class="k-plan"></i>planned ${glyph("failed")}failed ${glyph("skipped")}skipped</span>`;

function hour(at) {
  const rows = rowsOf(known.triggers.values(), known.planned.values(), at), more = rows.length - LANES_MAX;
  return card("hour", "The hour ahead", part(["forecast", "triggerMarks"], () => html`${lanes(rows.slice(0, LANES_MAX), at)}${more > 0 || known.hasMore ? html`<p class="note"><a class="inline" href="/calendar">${known.hasMore ? "More jobs come later in this hour" : counted(more, "more job")}</a></p>` : nothing}`), { note: currentZone(), more: legend() });
}

/** A schedule's row; it is made anew only when one of its times has changed, or the one that the reader looks at. */
function times([id, { schedule, triggers }]) {
  const looked = told?.scheduleId === id ? told : null;
  return guard([triggers, looked, room, currentZone()], () => html`<li class="strip-row"><a class="strip-name" href=${to("/schedules", id)}>${jobName(schedule)}<span class="expression">${schedule.expression} <span class="faint">${schedule.kind === "cron" ? schedule.timeZone : ""}</span></span></a>
    ${strip(triggers.slice(-room), { label: jobOf(schedule), told: looked, tell: (each) => { told = each; redraw(); } })}</li>`);
}

const nominal = () => card("nominal", "Every time, and what became of it", part(["scheduleTimes"], () => html`<ol class="strips">${repeat(known.strips, ([id]) => id, times)}</ol>`),
  { note: "the last nominal times of each schedule; a failure or a skip with its reason" });

export function view() {
  const at = now(), cells = document.querySelector(".cells");
  if (cells) room = roomFor(cells.clientWidth);
  if (known.fault) return html`<div class="page"><h1>Overview</h1>${fault(known.fault)}</div>`;
  if (!known.isReady) return waiting("Overview");
  return html`<div class="page overview"><h1 class="visually-hidden">Overview</h1>
    ${known.isAway ? html`<div class="banner" role="alert">${known.isAway.message} What you see is from before.</div>` : nothing}
    ${known.isExample && areWanted() ? firstSteps({ ran: known.hasRun }, redraw) : nothing}${figures(at)}
    <div class="columns"><div class="column">${guard([known.loads, Math.floor(at / LANES_EVERY_MS), currentZone()], () => hour(at))}${nominal()}</div>
      <div class="column side">${attention()}${card("running", "Running now", part(["jobTrigger"], () => running([...known.triggers.values()], (each) => known.usual.get(jobOf(each)), at)))}${ended()}</div></div></div>`;
}
