// One job: how it does, every nominal time of its schedules, its runs, its definition, and what can be done with it.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { pauseSchedule, remove, runJob, silence } from "../components/actions.js";
import { everyHour, outcomes, spread } from "../components/chart.js";
import { definition, editDefinition } from "../components/definition.js";
import { history } from "../components/history.js";
import { card, counted, empty, fault, figure, ignoredFilters, jobLink, jobName, jobOf, number, percent, time, waiting } from "../components/parts.js";
import { offer } from "../components/offer.js";
import { running } from "../components/running.js";
import { runsTable } from "../components/runs-table.js";
import { roomFor, strip } from "../components/strip.js";
import { choose, filters, to } from "../core/address.js";
import { ask, change } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { may } from "../core/permissions.js";
import { go } from "../core/router.js";
import { badge, glyph } from "../core/states.js";
import { iso, ms, now, relative, span } from "../core/time.js";
import { Turns } from "../core/turns.js";

const DAY = 86_400_000, CELLS = 60, TIMES_SHOWN = 5;
const NAMES = ["from", "to"];
let of = {}, detail = null, versions = null, stat = null, strips = new Map(), wrong = null, told = null, room = 30, redraw = () => {};
const turns = new Turns();

export const title = () => jobOf(of);

export function enter(draw, { application, job }) {
  [of, detail, versions, stat, strips, wrong, told, redraw] = [{ application, jobName: job }, null, null, null, new Map(), null, null, draw];
  turns.begin();
  load();
  const off = reloadOn(({ data }) => data?.application === of.application && data?.jobName === of.jobName, load);
  const beat = setInterval(() => document.hidden || draw(), 1000);
  return () => { off(); clearInterval(beat); };
}

async function load() {
  const mine = turns.next();
  try {
    const [found, figures, known] = await Promise.all([ask("jobDetail", of), ask("jobStat", { ...of, bucket: "hour", from: iso(now() - 7 * DAY) }), ask("jobVersions", { ...of, limit: 100 })]);
    const ids = found.jobDetail.schedules.map((each) => each.schedule.scheduleId).slice(0, 50);
    const times = ids.length ? (await ask("scheduleTimes", { scheduleId: ids.join(","), limit: CELLS })).schedules : [];
    if (!turns.take(mine)) return;
    [versions, detail, stat, wrong] = [known, found.jobDetail, figures.jobStat, null];
    strips = new Map(times.map((each) => [each.scheduleId, each.times]));
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

const compare = (changed) => { choose(changed); redraw(); };
const past = () => card("versions", "Who changed it", history(versions, filters(NAMES), compare), { count: versions.versions.length });

const hours = () => everyHour(stat.buckets, now() - 7 * DAY, now());

const figures = () => html`<div class="figures">
  ${figure("Succeeded, 7 days", percent(stat.successRate), `${number(stat.totalTriggers)} in all · ${number(stat.failed + stat.timedOut + stat.lost)} failed · ${number(stat.skipped)} skipped`)}
  ${figure("Usually takes", span(stat.durationMs.p50), stat.durationMs.p50 == null ? "no run has ended in 7 days" : `95 of 100 within ${span(stat.durationMs.p95)}; longest ${span(stat.durationMs.max)}`)}
  ${figure("Late by", span(stat.lagMs.p95), stat.lagMs.p95 == null ? "nothing has started in 7 days" : `95 of 100 or less; half by ${span(stat.lagMs.p50)}`)}
  <div class="figure wide"><h2>Last</h2>${last("succeeded", detail.lastSuccess)}${last("failed", detail.lastFailure)}</div></div>`;
const last = (word, trigger) => html`<p class="under">${word}: ${trigger ? html`<a href=${to("/runs", trigger.triggerId)}>${badge(trigger.state)} ${time(ms(trigger.finishedAt ?? trigger.dueTime))}</a>` : html`<span class="faint">never, as far as runs are kept</span>`}</p>`;

const nameOf = (each) => (each.scheduleName === each.scheduleId ? "Its schedule" : each.scheduleName);

function schedule({ schedule: each, nextTimes = [] }) {
  const times = (strips.get(each.scheduleId) ?? []).slice(0, room).reverse().map((time) => ({ ...time, scheduleId: each.scheduleId }));
  return html`<li class="strip-row"><div class="strip-name"><a href=${to("/schedules", each.scheduleId)}>${nameOf(each)}</a><span class="expression">${each.expression} <span class="faint">${each.timeZone}</span></span>
      <span class="under">${each.paused ? html`${glyph("cancelled")} paused: ${each.pauseReason ?? "nobody said why"}` : each.nextFireAt ? html`next ${relative(ms(each.nextFireAt))}` : "no time to come"}</span>
      ${may("schedule.pause", of.application) ? html`<button class="button small" @click=${() => pauseSchedule(each, load)}>${each.paused ? "Resume" : "Pause …"}</button>` : nothing}</div>
    ${strip(times, { label: nameOf(each), told: told?.scheduleId === each.scheduleId ? told : null, tell: (cell) => { told = cell; redraw(); } })}
    ${nextTimes.length ? html`<p class="under next-times">Then ${nextTimes.slice(0, TIMES_SHOWN).map((at) => html`${time(ms(at.time ?? at))} `)}</p>` : nothing}</li>`;
}

const schedules = () => card("schedules", "Every time, and what became of it", detail.schedules.length
  ? html`<ol class="strips">${repeat(detail.schedules, (each) => each.schedule.scheduleId, schedule)}</ol>`
  : empty("No schedule", "It runs when somebody runs it, or after the jobs that it depends on."), { more: !may("schedule.write", of.application) ? nothing : html`<a class="more" href="/schedules/new?application=${encodeURIComponent(of.application)}&jobName=${encodeURIComponent(of.jobName)}">Add a schedule</a>` });

const neighbours = (id, heading, list) => (list.length ? card(id, heading, html`<ul class="reasons">${list.map((each) => html`<li>${each.lastTrigger ? glyph(each.lastTrigger.state, each.lastTrigger.state) : glyph("queued")}<span>${jobLink(each)} <span class="faint">${each.exists ? `when it ${each.when === "succeeded" ? "succeeded" : each.when}` : "is gone"}</span></span></li>`)}</ul>`) : nothing);

const alarms = () => (detail.alarms.length ? card("alarms", "Open alarms", html`<ul class="attention">${detail.alarms.map((each) => html`<li>${glyph("failed")}<div><p>${each.message}</p><p class="under">${each.count} × since ${time(ms(each.openedAt))}</p></div></li>`)}</ul>`, { count: detail.alarms.length }) : nothing);

const edit = () => editDefinition({ title: `Edit ${jobOf(of)}`, name: "job", query: of, pick: (answer) => answer.jobs[0], done: load }).catch((error) => { wrong = error; redraw(); });
const drop = () => remove({
  title: "Delete the job", name: of.jobName, words: `${jobOf(of)} is deleted, with ${counted(detail.schedules.length, "schedule")}. ${counted(detail.dependents.length, "job runs", "jobs run")} after it. What it did stays in the history.`,
  act: async () => { await change("DELETE", "job", undefined, { query: of }); go("/jobs"); },
});

const head = () => html`<div class="page-head"><h1>${jobName(of)}</h1>${detail.job.enabled ? nothing : html`<span class="badge cancelled">${glyph("cancelled")}disabled</span>`}
    ${offer([{ word: "Run …", needs: "trigger.create", act: () => runJob(detail.job), tone: "primary", disabled: !detail.job.enabled }, { word: "Edit …", needs: "job.write", act: edit }, { word: "Silence …", needs: "silence.write", act: () => silence(of) }, { word: "Delete …", needs: "job.write", act: drop, tone: "danger" }], of.application)}</div>
  ${detail.job.description ? html`<p class="description">${detail.job.description}</p>` : nothing}
  ${detail.upstream.length || detail.dependents.length ? html`<p class="under"><a class="inline" href=${to("/chains", of.application, of.jobName)}>The chain that it is part of</a></p>` : nothing}
  <p class="under">${[detail.job.owner && `Owner: ${detail.job.owner}`, detail.job.groupName && `Group: ${detail.job.groupName}`, detail.job.managedBy && `From the files ${detail.job.managedBy}: an edit here is undone by the next apply`].filter(Boolean).join(" · ")}</p>`;

export function view() {
  const cells = document.querySelector(".cells");
  if (cells) room = roomFor(cells.clientWidth);
  if (wrong && !detail) return html`<div class="page"><h1>${jobOf(of)}</h1>${fault(wrong)}</div>`;
  if (!detail) return waiting(jobOf(of));
  return html`<div class="page">${head()}${ignoredFilters(filters(NAMES).ignored)}${wrong ? fault(wrong) : nothing}${figures()}
    <div class="columns"><div class="column">${schedules()}
      ${card("week", "The last 7 days, hour by hour", html`<div class="charts">${outcomes(hours(), "Runs")}${spread(hours(), "durationMs", "How long they took")}${spread(hours(), "lagMs", "How late they started")}</div>`)}
      ${card("recent", "Runs", detail.recent.length ? runsTable(detail.recent, { withJob: false, label: "Its last runs" }) : html`<p class="note">It has not run yet.</p>`, { more: html`<a class="more" href="/runs?application=${encodeURIComponent(of.application)}&jobName=${encodeURIComponent(of.jobName)}">All its runs</a>` })}</div>
    <div class="column side">${alarms()}${card("running", "Running now", running(detail.running, () => stat.durationMs.p50, now()))}${neighbours("upstream", "Runs after", detail.upstream)}${neighbours("dependents", "Then run", detail.dependents)}
      ${card("definition", "Definition", definition(detail.job), { note: html`version ${detail.job.version}, ${time(ms(detail.job.updatedAt))}${detail.job.updatedBy ? `, by ${detail.job.updatedBy}` : ""}` })}${past()}</div></div></div>`;
}
