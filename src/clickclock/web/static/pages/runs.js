// All runs, by any filter, newest first. New ones wait behind a button, so that the list never jumps under the pointer.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { actOnAll, filterOf } from "../components/bulk.js";
import { filterBar, SPANS, timeOf } from "../components/filter-bar.js";
import { counted, empty, fault, ignoredFilters, number, waiting } from "../components/parts.js";
import { kindWord, runsTable } from "../components/runs-table.js";
import { choose, filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { onChange, withChanges } from "../core/live.js";
import { may } from "../core/permissions.js";
import { STATES } from "../core/states.js";
import { now } from "../core/time.js";

const NAMES = ["application", "jobName", "state", "kind", "groupName", "scheduleId", "backfillId", "from", "to"];
const PAGE = 50, PICKS_MAX = 100;
const FIELDS = [
  { name: "application", label: "Application", placeholder: "any" }, { name: "jobName", label: "Job", placeholder: "any" },
  { name: "state", label: "State", options: [["", "any"], ["failed,timedOut,lost", "went wrong"], ["queued,starting,running", "not over"], ...Object.entries(STATES).map(([state, { word }]) => [state, word])] },
  { name: "kind", label: "Kind", options: [["", "any"], ...["schedule", "manual", "dependency", "backfill"].map((kind) => [kind, kindWord(kind)])] },
  { name: "groupName", label: "Group", placeholder: "any" },
  { name: "from", label: "When", options: SPANS },
];
let chosen = {}, rows = null, cursor = null, wrong = null, fresh = new Set(), isBusy = false, redraw = () => {}, asked = 0;

export const title = () => (chosen.state ? `Runs: ${chosen.state}` : "Runs");

export function enter(draw) {
  redraw = draw;
  rows = null;
  load();
  return onChange(({ change, missed }) => { if (missed) load(); else if (change) take(change); });
}

const query = () => Object.fromEntries(NAMES.map((name) => [name, name === "from" || name === "to" ? timeOf(chosen[name], now()) : chosen[name]]));

async function load(more = null) {
  const mine = ++asked;
  chosen = filters([...NAMES, "chosen"]);
  isBusy = true;
  redraw();
  try {
    const [answer, heard] = await withChanges(ask("jobTrigger", { ...query(), limit: PAGE, cursor: more }));
    if (mine !== asked) return;
    rows = more ? [...rows, ...answer.triggers] : answer.triggers;
    cursor = answer.nextCursor;
    if (!more) fresh = new Set();
    wrong = null;
    heard.forEach(take);
  } catch (error) { if (mine === asked) wrong = error; }
  isBusy = false;
  redraw();
}

function take({ type, data }) {
  if (!type.startsWith("clickclock.trigger.") || !rows) return;
  const at = rows.findIndex((each) => each.triggerId === data.triggerId);
  if (at >= 0) rows = rows.with(at, { ...rows[at], ...data });
  else if (fits(data)) fresh.add(data.triggerId);
  else return;
  redraw();
}

const fits = (each) => ["application", "jobName", "groupName", "scheduleId"].every((name) => !chosen[name] || chosen[name] === each[name])
  && (!chosen.state || chosen.state.split(",").includes(each.state)) && !chosen.kind && !chosen.backfillId && !chosen.to;

const mayAct = () => may("trigger.cancel") || may("trigger.create");
const isFiltered = () => NAMES.some((name) => chosen[name]);
const picked = () => new Set(chosen.chosen ? chosen.chosen.split(",").filter((id) => rows.some((each) => each.triggerId === id)) : []);
function toggle(id) {
  const ids = picked();
  if (!ids.delete(id)) ids.add(id);
  choose({ chosen: [...ids].slice(0, PICKS_MAX).join(",") });
  chosen = filters([...NAMES, "chosen"]);
  redraw();
}
const unpick = () => { choose({ chosen: null }); load(); };
const actOnPicked = (ids) => actOnAll({ triggerIds: [...ids] }, unpick).catch((error) => { wrong = error; redraw(); });
const picks = (ids) => html`<div class="picks" role="status"><b>${counted(ids.size, "run")} chosen</b><button class="button small" @click=${() => actOnPicked(ids)}>Do something with ${ids.size === 1 ? "it" : "them"} …</button><button class="button small" @click=${unpick}>Choose none</button>${ids.size === PICKS_MAX ? html`<span class="under">This is the most at once.</span>` : nothing}</div>`;
const act = () => actOnAll(filterOf({ ...query() }), () => load()).catch((error) => { wrong = error; redraw(); });

const nothingHere = () => (isFiltered()
  ? empty("No run fits", "Take a filter away, or choose a longer time.")
  : empty("Nothing has run yet", "A run appears here as soon as a schedule is due, or somebody runs a job:", "clickclock trigger APPLICATION JOB --follow"));

export function view() {
  if (!rows && !wrong) return waiting("Runs");
  return html`<div class="page"><div class="page-head"><h1>Runs</h1>${fresh.size ? html`<button class="button primary" @click=${() => load()}>${number(fresh.size)} new</button>` : nothing}
      ${rows?.length && isFiltered() && mayAct() ? html`<div class="actions"><button class="button" @click=${act}>All that match …</button></div>` : nothing}</div>
    ${ignoredFilters(chosen.ignored ?? [])}${filterBar(FIELDS, chosen, () => load())}${wrong ? fault(wrong) : nothing}
    ${rows?.length ? html`<section class="card" aria-busy=${isBusy}>${picked().size ? picks(picked()) : nothing}${runsTable(rows, { picks: mayAct() ? { ids: picked(), toggle } : null })}
      ${cursor ? html`<p class="note"><button class="button" ?disabled=${isBusy} @click=${() => load(cursor)}>Older</button></p>` : html`<p class="note">That is all.</p>`}</section>`
      : rows && !wrong ? html`<section class="card">${cursor ? html`<p class="note">Nothing in the newest part of the history. <button class="button" @click=${() => load(cursor)}>Look further back</button></p>` : nothingHere()}</section>` : nothing}</div>`;
}
