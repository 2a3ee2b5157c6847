// Backfills: times of the past that are made up for, how far each is, and its pace.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { field, openDialog } from "../components/dialog.js";
import { empty, fault, ignoredFilters, jobLink, jobOf, number, time, waiting } from "../components/parts.js";
import { say } from "../components/toast.js";
import { filters } from "../core/address.js";
import { ask, change } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { may } from "../core/permissions.js";
import { glyph } from "../core/states.js";
import { ms } from "../core/time.js";

const NAMES = ["application", "jobName", "scheduleId", "state"], PAGE = 50;
const STATES = { running: ["running", "running"], paused: ["cancelled", "paused"], done: ["succeeded", "done"], cancelled: ["cancelled", "cancelled"] };
let backfills = null, cursor = null, wrong = null, redraw = () => {}, asked = 0;

export const title = () => "Backfills";

export function enter(draw) {
  redraw = draw;
  backfills = null;
  load();
  return reloadOn(({ type, data }) => type.startsWith("clickclock.backfill.") || data?.backfillId, load);
}

async function load(more = null) {
  const mine = ++asked, { ignored, ...query } = filters(NAMES);
  try {
    const answer = await ask("backfill", { ...query, limit: PAGE, cursor: more });
    if (mine !== asked) return;
    [backfills, cursor, wrong] = [more ? [...backfills, ...answer.backfills] : answer.backfills, answer.nextCursor, null];
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

const put = async (each, body) => { await change("PUT", "backfill", { backfillId: each.backfillId, ...body }, { etag: `"${each.version}"` }); await load(); };
const toggle = (each) => put(each, { paused: each.state === "running" }).then(() => say(each.state === "running" ? "It is paused. What is queued or runs goes on." : "It goes on."), (error) => say(error.message));

const pace = (each) => openDialog({
  title: "Pace the backfill", button: "Change",
  body: () => html`<p>${jobLink(each)}</p>${field("At once", html`<input name="most" type="number" min="1" max="1000" required value=${each.maxConcurrentTriggers}>`, "Triggers that may be unfinished.")}${field("A second", html`<input name="rate" type="number" min="0.01" max="200" step="any" required value=${each.maxTriggersPerSecond}>`, "Times that may become triggers.")}`,
  act: async (values) => { await put(each, { maxConcurrentTriggers: Number(values.get("most")), maxTriggersPerSecond: Number(values.get("rate")) }); say("It goes at the new pace."); },
});
const cancel = (each) => openDialog({
  title: "Cancel the backfill?", button: "Cancel the backfill", tone: "danger",
  body: () => html`<p>${jobOf(each)}: its queued triggers are cancelled, and those that run are stopped. What it did stays done.</p>`,
  act: async () => { await change("DELETE", "backfill", undefined, { query: { backfillId: each.backfillId } }); say("It is cancelled."); await load(); },
});

function row(each) {
  const [tone, word] = STATES[each.state] ?? ["queued", each.state], settled = each.triggered + each.skipped, share = each.total ? Math.min(1, settled / each.total) : 1, isOpen = each.state === "running" || each.state === "paused";
  return html`<tr data-row><td><a href="/runs?backfillId=${encodeURIComponent(each.backfillId)}" aria-label="Runs of the backfill of ${jobOf(each)}"><span class="badge ${tone}">${glyph(tone)}${word}</span></a></td><td class="cell-name">${jobLink(each)}</td>
    <td class="cell-why">${time(ms(each.from))} <span class="faint">to</span> ${time(ms(each.to))}</td><td class="cell-why"><span class="gauge" aria-hidden="true"><i .style=${`inline-size:${share * 100}%`}></i></span>${number(settled)} of ${number(each.total)}</td>
    <td class="wide-only cell-why faint">${each.reason ?? each.message ?? nothing}</td>
    <td class="cell-why"><div class="row-actions">${isOpen && may("backfill.write", each.application) ? html`<button class="button" @click=${() => toggle(each)} aria-label="${each.state === "running" ? "Pause" : "Resume"} the backfill of ${jobOf(each)}">${each.state === "running" ? "Pause" : "Resume"}</button><button class="button" @click=${() => pace(each)} aria-label="Pace the backfill of ${jobOf(each)}">Pace …</button><button class="button danger" @click=${() => cancel(each)} aria-label="Cancel the backfill of ${jobOf(each)}">Cancel …</button>` : nothing}</div></td></tr>`;
}

export function view() {
  if (!backfills && !wrong) return waiting("Backfills");
  return html`<div class="page"><div class="page-head"><h1>Backfills</h1></div>${ignoredFilters(filters(NAMES).ignored)}${wrong ? fault(wrong) : nothing}
    ${backfills?.length ? html`<section class="card"><div class="table-box" tabindex="0" role="region" aria-label="Backfills"><table class="stacked" data-rows><thead><tr><th scope="col">State</th><th scope="col">Job</th><th scope="col">Times</th><th scope="col">Settled</th><th scope="col" class="wide-only">Why</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
      <tbody>${repeat(backfills, (each) => each.backfillId, row)}</tbody></table></div>${cursor ? html`<p class="note"><button class="button" @click=${() => load(cursor)}>More</button></p>` : nothing}</section>`
      : backfills ? html`<section class="card">${empty("There is no backfill", "It runs a schedule's times of the past, behind everything else:", "clickclock backfill start SCHEDULE --from 2026-11-01 --to 2026-11-08")}</section>` : nothing}</div>`;
}
