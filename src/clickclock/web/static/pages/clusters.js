// Where attempts run and who serves: slots and what takes them, replicas and their loops, the store, and what is wrong.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { card, counted, empty, fault, figure, ignoredFilters, number, prose, time, waiting } from "../components/parts.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { glyph } from "../core/states.js";
import { ms, now, span } from "../core/time.js";
import { Turns } from "../core/turns.js";

const EVERY_MS = 5000;
let info = null, wrong = null, redraw = () => {};
const turns = new Turns();

export const title = () => "Clusters";

export function enter(draw) {
  redraw = draw;
  info = null;
  turns.begin();
  load();
  const beat = setInterval(() => document.hidden || load(), EVERY_MS);
  return () => clearInterval(beat);
}

async function load() {
  const mine = turns.next();
  try {
    const found = await ask("cluster");
    if (turns.take(mine)) [info, wrong] = [found.cluster, null];
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

function cluster(each) {
  const share = each.capacity ? Math.min(1, each.running / each.capacity) : 0;
  return html`<tr data-row><td class="cell-name"><bdi>${each.cluster}</bdi> <span class="faint">${each.executor ?? ""}</span></td>
    <td>${each.reachable ? html`${glyph("succeeded")} answers` : html`<span class="badge failed">${glyph("failed")}does not answer</span>`}</td>
    <td class="cell-why"><span class="gauge ${share === 1 ? "full" : ""}" aria-hidden="true"><i .style=${`inline-size:${share * 100}%`}></i></span>${number(each.running)} of ${number(each.capacity)} slots</td>
    <td class="num">${number(each.queued)}</td><td class="faint cell-why">${each.message ?? each.nodes.join(", ")}</td></tr>`;
}

function replica(each) {
  const stalled = each.loops.filter((loop) => loop.stalled);
  return html`<tr data-row><td class="cell-name"><bdi>${each.node}</bdi></td><td><bdi>${each.host}</bdi></td><td>${each.version}</td><td>since ${time(ms(each.startedAt))}</td>
    <td class="cell-why">heard ${span(Math.max(0, now() - ms(each.heartbeatAt)))} ago</td><td class="cell-why">${stalled.length ? html`<span class="badge failed">${glyph("failed")}${stalled.map((loop) => loop.name).join(", ")}</span>` : html`${glyph("succeeded")} all ${each.loops.length} loops run`}</td></tr>`;
}

const table = (label, heads, rows) => html`<div class="table-box" tabindex="0" role="region" aria-label=${label}><table class="stacked" data-rows><thead><tr>${heads.map((head) => html`<th scope="col" class=${head === "Waiting" ? "num" : ""}>${head}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`;

const backup = (known) => known ? figure("Last verified backup", known.verifiedAt ? html`${span(Math.max(0, now() - ms(known.verifiedAt)))} ago` : "none yet", known.failure ?? known.verifiedId ?? "") : nothing;

function findings() {
  if (!info.findings.length) return card("findings", "Wrong now", html`<p class="note">${glyph("succeeded")} Nothing.</p>`);
  return card("findings", "Wrong now", html`<ul class="attention">${info.findings.map((each) => html`<li>${glyph(each.severity === "fail" ? "failed" : "timedOut", each.severity)}<div><p>${prose(each.message)}</p><p class="under">${prose(each.remedy)}</p></div></li>`)}</ul>`, { count: info.findings.length });
}

export function view() {
  if (!info && !wrong) return waiting("Clusters");
  if (!info) return html`<div class="page"><h1>Clusters</h1>${fault(wrong)}</div>`;
  const { totals, store } = info;
  return html`<div class="page"><div class="page-head"><h1>Clusters</h1></div>${ignoredFilters(filters([]).ignored)}${wrong ? fault(wrong) : nothing}
    <div class="figures">${figure("Running", number(totals.running), `${number(totals.queued)} wait`)}${figure("Jobs", number(totals.jobs), counted(totals.schedules, "schedule"))}${figure("Store", span(store.latencyMs), `${store.kind}, an empty transaction`)}${backup(info.backup)}</div>
    ${findings()}${card("places", "Where attempts run", info.clusters.length ? table("Clusters", ["Cluster", "State", "Slots", "Waiting", "Nodes"], info.clusters.map(cluster)) : empty("No cluster", "No replica that is alive runs attempts."))}
    ${card("replicas", "Who serves", table("Replicas", ["Node", "Host", "Version", "Started", "Heartbeat", "Loops"], info.replicas.map(replica)), { count: info.replicas.length, note: html`<a href="/lag?by=node">How late each machine starts, by the hour</a>` })}</div>`;
}
