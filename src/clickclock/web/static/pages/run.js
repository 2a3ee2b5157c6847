// One run: what it is, why it waited, its attempts, and the output of one of them.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { cancelRun, runJob } from "../components/actions.js";
import { LogReader } from "../components/log-reader.js";
import { logView } from "../components/log.js";
import { offer } from "../components/offer.js";
import { fault, jobLink, jobOf, time, waiting } from "../components/parts.js";
import { kindWord } from "../components/runs-table.js";
import { choose, filters, to } from "../core/address.js";
import { ask } from "../core/api.js";
import { onChange } from "../core/live.js";
import { badge, glyph, isOver, why, wordOf } from "../core/states.js";
import { ms, now, span } from "../core/time.js";
import { Turns } from "../core/turns.js";

let id = "", trigger = null, wrong = null, log = null, attempt = null, job = null, redraw = () => {};
const turns = new Turns();

export const title = () => (trigger ? `${jobOf(trigger)}, ${wordOf(trigger.state)}` : "Run");

export function enter(draw, { triggerId }) {
  [id, trigger, wrong, job, redraw] = [triggerId, null, null, null, draw];
  attempt = Number(filters(["attempt", "q"]).attempt) || null;
  log = null;
  turns.begin();
  load();
  const off = onChange(({ change, missed }) => { if (missed || change?.data?.triggerId === id) load(); });
  const beat = setInterval(() => trigger && !isOver(trigger.state) && draw(), 1000);
  addEventListener("keydown", keys);
  return () => { off(); clearInterval(beat); removeEventListener("keydown", keys); log?.close(); };
}

async function load() {
  const mine = turns.next();
  try {
    const answer = await ask("jobTrigger", { triggerId: id });
    if (!turns.take(mine)) return;
    wrong = null;
    [trigger] = answer.triggers;
    if (!trigger) wrong = { message: "There is no such run, or it is kept no longer." };
    else if (!log && trigger.attempt > 0 && trigger.state !== "starting") read();
    const known = trigger && !job ? await ask("job", { application: trigger.application, jobName: trigger.jobName }) : null;
    if (!turns.take(mine)) return;
    if (known) [job = null] = known.jobs;
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

function read() {
  log?.close();
  log = new LogReader(id, attempt, redraw);
}

function show(chosen) {
  attempt = chosen;
  history.replaceState(null, "", location.pathname);
  choose({ attempt: chosen });
  read();
  redraw();
}

function keys(event) {
  if (!log || event.defaultPrevented || event.target.matches("input, select, textarea") || event.metaKey || event.ctrlKey || event.altKey) return;
  const by = { "[": -1, "]": 1 }[event.key], all = trigger.attempts ?? [], at = all.findIndex((each) => each.attempt === (attempt ?? trigger.attempt));
  if (by && all[at + by]) show(all[at + by].attempt);
  if (by || log.press(event.key)) event.preventDefault();
}

const fact = (name, value) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

function facts() {
  const began = ms(trigger.startedAt), ended = ms(trigger.finishedAt);
  return html`<dl class="facts">
    ${fact("Due", time(ms(trigger.dueTime)))}${fact("Started", trigger.startedAt ? html`${time(began)} <span class="faint">${trigger.lagMs == null ? "" : `${span(trigger.lagMs)} late`}</span>` : "not yet")}
    ${fact(isOver(trigger.state) ? "Ran" : "Running for", span(trigger.durationMs ?? (began ? (ended ?? now()) - began : null)))}
    ${fact("Attempt", trigger.attempt ? `${trigger.attempt} of ${trigger.maxAttempts}` : "none yet")}
    ${trigger.exitCode == null ? nothing : fact("Exit code", trigger.exitCode)}
    ${fact("Decided by", trigger.scheduleId ? html`<a href=${to("/schedules", trigger.scheduleId)}>its schedule</a>` : html`${kindWord(trigger.kind)}${trigger.requestedBy ? `, ${trigger.requestedBy}` : ""}`)}
    ${trigger.reason ? fact("Asked for because", trigger.reason) : nothing}
    ${trigger.node ? fact("On", html`${trigger.cluster}, ${trigger.node}`) : nothing}
    ${trigger.maxMemoryBytes ? fact("Memory", `${Math.round(trigger.maxMemoryBytes / 2 ** 20)} MiB`) : nothing}${trigger.cpuSeconds ? fact("Processor", span(trigger.cpuSeconds * 1000)) : nothing}
    ${Object.keys(trigger.parameters ?? {}).length ? fact("Parameters", Object.entries(trigger.parameters).map(([name, value]) => html`<code>${name}=${value}</code> `)) : nothing}
    ${trigger.resolvedCommand ? html`<div class="broad"><dt>Command</dt><dd><code tabindex="0">${trigger.resolvedCommand.join(" ")}</code></dd></div>` : nothing}</dl>`;
}

/** What it waits for, or waited for, as far as the record says. */
function waits() {
  const said = [
    ...(trigger.waitsFor ?? []).map((each) => each.message),
    ...(trigger.state === "queued" && trigger.retryAt ? [html`It is tried again, or may first start, at ${time(ms(trigger.retryAt))}.`] : []),
    ...(trigger.preemptedBy ? [html`It made room for <a href=${to("/runs", trigger.preemptedBy)}>another run</a> of higher priority${trigger.preemptionCount > 1 ? `, ${trigger.preemptionCount} times in all` : ""}.`] : []),
    ...(trigger.upstream ?? []).map((each) => html`${isOver(trigger.state) || trigger.state === "running" ? "It ran after" : "It waits for"} ${jobLink(each)}${each.state ? html`: ${each.triggerId ? html`<a href=${to("/runs", each.triggerId)}>${badge(each.state)}</a>` : badge(each.state)}` : ", which has no run yet"}`),
  ];
  return said.length ? html`<ul class="reasons">${said.map((each) => html`<li>${glyph("queued")}<span>${each}</span></li>`)}</ul>` : nothing;
}

const attempts = () => (trigger.attempts?.length > 1 ? html`<div class="tabs" role="group" aria-label="Attempts">${trigger.attempts.map((each) => html`<button class="button" aria-pressed=${each.attempt === (attempt ?? trigger.attempt)} @click=${() => show(each.attempt)}>${badge(each.state)} ${each.attempt}</button>`)}</div>` : nothing);

const actions = () => offer([
  ...(isOver(trigger.state) ? [] : [{ word: "Cancel …", needs: "trigger.cancel", act: () => cancelRun(trigger, load), tone: "danger" }]),
  ...(job ? [{ word: "Run again …", needs: "trigger.create", act: () => runJob(job, { given: trigger.parameters, title: "Run again" }) }] : []),
], trigger.application);

export function view() {
  if (wrong && !trigger) return html`<div class="page"><h1>Run</h1>${fault(wrong)}</div>`;
  if (!trigger) return waiting("Run");
  const raw = `/schedulerService/jobLog?triggerId=${encodeURIComponent(id)}${attempt ? `&attempt=${attempt}` : ""}`;
  const because = why(trigger);
  return html`<div class="page run-page"><div class="page-head"><h1>${jobLink(trigger)}</h1>${badge(trigger.state)}${actions()}</div>
    ${wrong ? fault(wrong) : nothing}
    ${because ? html`<p class="because ${trigger.state}">${because[0].toUpperCase()}${because.slice(1)}.</p>` : nothing}
    <section class="card" aria-label="About this run">${facts()}${waits()}</section>
    <section class="card output" aria-labelledby="output"><div class="card-head"><h2 id="output">Output</h2>${attempts()}</div>
      ${log ? logView(log, raw) : html`<p class="note">${isOver(trigger.state) ? "It never started, so it wrote nothing." : "It has not started yet. What it writes appears here."}</p>`}</section></div>`;
}
