// Groups: what jobs share, how much of it is taken, and pausing all of them at once.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { openDialog } from "../components/dialog.js";
import { counted, empty, fault, ignoredFilters, number, waiting } from "../components/parts.js";
import { say } from "../components/toast.js";
import { filters } from "../core/address.js";
import { ask, change } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { may } from "../core/permissions.js";
import { glyph } from "../core/states.js";
import { Turns } from "../core/turns.js";

let groups = null, wrong = null, redraw = () => {};
const turns = new Turns();

export const title = () => "Groups";

export function enter(draw) {
  redraw = draw;
  groups = null;
  turns.begin();
  load();
  return reloadOn(({ type }) => /\.(group|trigger)\./.test(type), load);
}

async function load() {
  const mine = turns.next();
  try {
    const found = await ask("group", { limit: 1000 });
    if (turns.take(mine)) [groups, wrong] = [found.groups, null];
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

const put = async (group, paused) => { await change("PUT", "group", { ...group, paused }, { etag: `"${group.version}"` }); await load(); };
const again = (name) => groups.find((each) => each.groupName === name);

function toggle(group) {
  if (group.paused) {
    put(group, false).then(() => say(`${group.groupName} goes on. What was due meanwhile was skipped.`, () => put(again(group.groupName), true)), (error) => say(error.message));
    return;
  }
  openDialog({
    title: "Pause the group", button: "Pause",
    body: () => html`<p>Nothing of <b><bdi>${group.groupName}</bdi></b>, which has ${counted(group.jobs, "job")}, starts until somebody resumes it. Times that come meanwhile are skipped, and say why. What runs goes on.</p>`,
    act: async () => { await put(group, true); say(`${group.groupName} is paused.`, () => put(again(group.groupName), false)); },
  });
}

function row(group) {
  const most = group.maxConcurrentTriggers, share = most ? Math.min(1, group.running / most) : 0;
  return html`<tr data-row><td class="cell-name"><a href="/jobs?groupName=${encodeURIComponent(group.groupName)}"><bdi>${group.groupName}</bdi></a>${group.paused ? html` <span class="badge cancelled">${glyph("cancelled")}paused</span>` : nothing}</td>
    <td class="num">${counted(group.jobs, "job")}</td><td>${most ? html`<span class="gauge ${share === 1 ? "full" : ""}" aria-hidden="true"><i .style=${`inline-size:${share * 100}%`}></i></span>` : nothing}${number(group.running)} ${most ? `of ${number(most)} run` : "run"}</td>
    <td class="num"><a href="/runs?groupName=${encodeURIComponent(group.groupName)}&state=queued">${number(group.queued)} wait</a></td><td class="faint cell-why">${group.description ?? nothing}</td>
    <td class="cell-why"><div class="row-actions">${may("group.write") ? html`<button class="button" @click=${() => toggle(group)} aria-label="${group.paused ? "Resume" : "Pause"} ${group.groupName}">${group.paused ? "Resume" : "Pause …"}</button>` : nothing}</div></td></tr>`;
}

export function view() {
  if (!groups && !wrong) return waiting("Groups");
  return html`<div class="page"><div class="page-head"><h1>Groups</h1></div>${ignoredFilters(filters([]).ignored)}${wrong ? fault(wrong) : nothing}
    ${groups?.length ? html`<section class="card"><div class="table-box" tabindex="0" role="region" aria-label="Groups"><table class="stacked" data-rows><thead><tr><th scope="col">Group</th><th scope="col" class="num">Jobs</th><th scope="col">Running</th><th scope="col" class="num">Waiting</th><th scope="col">What for</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
      <tbody>${repeat(groups, (each) => each.groupName, row)}</tbody></table></div></section>`
      : groups ? html`<section class="card">${empty("There is no group", "Jobs of a group share defaults and a cap, and are paused together:", "clickclock group create exports --max-concurrent-triggers 4")}</section>` : nothing}</div>`;
}
