// All jobs: where each stands, what its last runs came to, and when it is due next.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { guard } from "../vendor/lit-html/directives/guard.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { runJob } from "../components/actions.js";
import { filterBar } from "../components/filter-bar.js";
import { counted, empty, fault, ignoredFilters, jobLink, jobOf, time, waiting } from "../components/parts.js";
import { filters, to } from "../core/address.js";
import { ask } from "../core/api.js";
import { may } from "../core/permissions.js";
import { onChange, reloadOn, withChanges } from "../core/live.js";
import { badge, glyph, isBad, isOver, toneOf, why, wordOf } from "../core/states.js";
import { currentZone, full, ms, now, relative, span } from "../core/time.js";

const NAMES = ["application", "jobName", "groupName", "enabled"];
const FIELDS = [
  { name: "application", label: "Application", placeholder: "any" }, { name: "jobName", label: "Job", placeholder: "whole name" }, { name: "groupName", label: "Group", placeholder: "any" },
  { name: "enabled", label: "Enabled", options: [["", "any"], ["true", "enabled"], ["false", "disabled"]] },
];
const PAGE = 50, RECENT = 12, LATE_MS = 5000;
let chosen = {}, jobs = null, cursor = null, wrong = null, redraw = () => {}, asked = 0, loaded = 0;

export const title = () => "Jobs";

export function enter(draw) {
  redraw = draw;
  jobs = null;
  load();
  const offs = [onChange(({ change }) => change && take(change)), reloadOn(({ type }) => type.startsWith("clickclock.job."), () => load())];
  const beat = setInterval(() => {
    if (document.hidden || !jobs) return;
    draw();
    if (jobs.length <= PAGE && jobs.some((each) => each.nextFireAt && ms(each.nextFireAt) < now() - LATE_MS) && now() - loaded > LATE_MS) load();
  }, 1000);
  return () => { offs.forEach((off) => off()); clearInterval(beat); };
}

async function load(more = null) {
  const mine = ++asked;
  chosen = filters(NAMES);
  try {
    const { ignored, ...query } = chosen, [answer, heard] = await withChanges(ask("jobState", { ...query, limit: PAGE, recent: RECENT, cursor: more }));
    if (mine !== asked) return;
    jobs = more ? [...jobs, ...answer.jobStates] : answer.jobStates;
    cursor = answer.nextCursor;
    loaded = now();
    wrong = null;
    heard.forEach(take);
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

function take({ type, data }) {
  const job = type.startsWith("clickclock.trigger.") && jobs?.find((each) => jobOf(each) === jobOf(data));
  if (!job) return;
  const rest = job.recent.filter((each) => each.triggerId !== data.triggerId), before = job.recent.find((each) => each.triggerId === data.triggerId);
  job.recent = [{ ...before, ...data }, ...rest].sort((a, b) => (a.triggerId < b.triggerId ? 1 : -1)).slice(0, RECENT);
  redraw();
}

const dot = (each) => html`<a class="cell small ${toneOf(each.state)}" href=${to("/runs", each.triggerId)} tabindex="-1" title="${full(ms(each.dueTime))}, ${wordOf(each.state)} ${why(each)}" aria-label="${wordOf(each.state)} ${full(ms(each.dueTime))}">${each.state === "succeeded" ? nothing : glyph(each.state)}</a>`;

const due = (job) => (ms(job.nextFireAt) > now() ? relative(ms(job.nextFireAt)) : "due");
/** A job's row; it is made anew only when the job has changed, or the words that say when it is due next. */
const row = (job) => guard([job, job.recent, job.nextFireAt && due(job), currentZone(), may("trigger.create", job.application)], () => rowOf(job));

function rowOf(job) {
  const [last] = job.recent, bad = job.recent.filter((each) => isBad(each.state)).length;
  return html`<tr data-row><td class="cell-name">${jobLink(job)}${job.enabled ? nothing : html` <span class="faint">disabled</span>`}</td>
    <td>${last ? html`<a href=${to("/runs", last.triggerId)}>${badge(last.state)}</a>` : html`<span class="faint">never ran</span>`}</td>
    <td class="wide-only"><div class="cells" role="group" aria-label="The last ${counted(job.recent.length, "run")}; ${bad} went wrong">${repeat([...job.recent].reverse(), (each) => each.triggerId, dot)}</div></td>
    <td class="num wide-only">${last && isOver(last.state) ? span(last.durationMs) : nothing}</td>
    <td class="wide-only">${last ? time(ms(last.dueTime)) : nothing}</td><td>${job.nextFireAt ? html`<time title=${full(ms(job.nextFireAt))}>${due(job)}</time>` : html`<span class="faint">not planned</span>`}</td>
    <td class="num wide-only">${may("trigger.create", job.application) ? html`<button class="button" ?disabled=${!job.enabled} @click=${() => run(job)} aria-label="Run ${jobOf(job)}">Run …</button>` : nothing}</td></tr>`;
}

async function run({ application, jobName }) {
  try { runJob((await ask("job", { application, jobName })).jobs[0]); } catch (error) { wrong = error; redraw(); }
}

const table = () => html`<section class="card"><div class="table-box" tabindex="0" role="region" aria-label="Jobs"><table class="stacked" data-rows>
  <thead><tr><th scope="col">Job</th><th scope="col">Last</th><th scope="col" class="wide-only">Lately</th><th scope="col" class="num wide-only">Ran</th><th scope="col" class="wide-only">Due</th><th scope="col">Next</th><th scope="col" class="wide-only"><span class="visually-hidden">Actions</span></th></tr></thead>
  <tbody>${repeat(jobs, jobOf, row)}</tbody></table></div>${cursor ? html`<p class="note"><button class="button" @click=${() => load(cursor)}>More</button></p>` : nothing}</section>`;

export function view() {
  if (!jobs && !wrong) return waiting("Jobs");
  const isFiltered = NAMES.some((name) => chosen[name]);
  return html`<div class="page"><div class="page-head"><h1>Jobs</h1></div>${ignoredFilters(chosen.ignored ?? [])}${filterBar(FIELDS, chosen, () => load())}${wrong ? fault(wrong) : nothing}
    ${jobs?.length ? table() : jobs ? html`<section class="card">${isFiltered ? empty("No job fits", "Take a filter away.") : empty("There is no job yet", "Make one and give it a schedule:",
      `clickclock job create APPLICATION NAME --command "echo hello"\nclickclock schedule create APPLICATION NAME "*/5 * * * *"`)}</section>` : nothing}</div>`;
}
