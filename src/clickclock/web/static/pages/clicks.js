// Clicks as they arrive, each rejection with every reason; and the checker: what the collector makes of what one pastes.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { field } from "../components/credit.js";
import { card, empty, fault, ignoredFilters } from "../components/parts.js";
import { verdict } from "../components/verdict.js";
import { choose, filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { arrivals } from "../core/arrivals.js";
import { glyph } from "../core/states.js";
import { clock, ms } from "../core/time.js";

const KNOWN = ["client", "kind", "click", "clientId", "sellerId"];
const KINDS = [["", "everything"], ["click", "clicks"], ["rejection", "rejections"], ["order", "orders"]];
const LOOKS = { click: ["succeeded", "click"], rejection: ["failed", "rejected"], order: ["starting", "order"], other: ["queued", "other"] };
const HINTS = ["gclid", "gbraid", "wbraid", "uclid", "fbclid", "fb_campaign_id", "utm_campaign", "utm_source", "source", "atag"];
const ROWS_MAX = 200;
let rows = [], waiting_ = [], isHeld = false, state = "connecting", gap = null, told = null, wrong = null, isAsking = false, redraw = () => {}, unwatch = () => {};

export const title = () => "Clicks";

export function enter(draw) {
  redraw = draw;
  [rows, waiting_, gap] = [[], [], null];
  watch();
  const { click, clientId, sellerId } = filters(KNOWN);
  if (click) look({ click, clientId, sellerId });
  else [told, wrong] = [null, null];
  return () => unwatch();
}

function watch() {
  unwatch();
  const { client, kind } = filters(KNOWN);
  unwatch = arrivals({ ...(client && { clientId: client }), ...(kind && { kind }) }, (heard) => {
    if (heard.state) state = heard.state;
    else if (heard.missed) gap = heard.missed;
    else if (isHeld) waiting_ = [heard, ...waiting_].slice(0, ROWS_MAX);
    else rows = [heard, ...rows].slice(0, ROWS_MAX);
    redraw();
  });
}

function release() {
  rows = [...waiting_, ...rows].slice(0, ROWS_MAX);
  [waiting_, isHeld] = [[], false];
  redraw();
}

function choice(changed) {
  choose(changed, { push: true });
  [rows, waiting_, gap] = [[], [], null];
  watch();
  redraw();
}

function look(asked) {
  isAsking = true;
  redraw();
  ask("/attribution/check", asked).then(({ check }) => { [told, wrong] = [{ check, asked }, null]; }, (error) => { [told, wrong] = [null, error]; }).then(() => { isAsking = false; redraw(); });
}

function submit(event) {
  event.preventDefault();
  const asked = Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, value.trim()]));
  choose(asked, { push: true });
  look(asked);
}

const hint = (parameters = {}) => { const name = HINTS.find((each) => parameters[each]); return name ? html`<span class="faint">${name}</span> <bdi>${parameters[name]}</bdi>` : nothing; };
const says = (row) => (row.seen === "order" || row.order ? html`<bdi>${row.order?.order_id ?? ""}</bdi> ${row.order?.amount ?? ""} ${row.order?.currency ?? ""}` : hint(row.parameters));

const arrival = (row) => html`<li data-row><details><summary><time>${clock(ms(row.receivedAt))}</time>${glyph(LOOKS[row.seen][0])}<b>${LOOKS[row.seen][1]}</b><bdi class="faint">${row.clientId ?? "no client"}</bdi><span class="arrival-says">${says(row)}</span></summary>
    <pre class="command" tabindex="0"><code>${JSON.stringify(row.order ?? row.parameters ?? {}, null, 2)}</code></pre><p class="under">${row.identifierName ? html`<code>${row.identifierName}</code> <bdi>${row.identifier}</bdi> · ` : nothing}${row.profile ? `profile ${row.profile} · ` : ""}<bdi>${row.agent || "no user agent"}</bdi></p></details>
  ${row.faults?.length ? html`<ul class="faults">${row.faults.map((each) => html`<li><code>${each.field}</code> ${each.message}</li>`)}</ul>` : nothing}${row.flags?.length ? html`<p class="under">let pass: ${row.flags.join(", ")}</p>` : nothing}</li>`;

function live() {
  const { client, kind } = filters(KNOWN), clickUrl = `${location.protocol}//${location.hostname}:8081`;
  return card("live", "What arrives", html`<form class="filter-bar pad" aria-label="What is shown" @submit=${(event) => event.preventDefault()}>
      <label class="filter"><span>Show</span><select @change=${(event) => choice({ kind: event.target.value })}>${KINDS.map(([key, word]) => html`<option value=${key} ?selected=${key === kind}>${word}</option>`)}</select></label>${field("Client", client, (value) => choice({ client: value }), { placeholder: "all" })}</form>
    ${gap ? html`<p class="banner pad">${gap.message}</p>` : nothing}
    ${waiting_.length ? html`<p class="pad"><button class="button" @click=${release}>${waiting_.length} new</button></p>` : nothing}
    ${rows.length ? html`<ol class="arrivals" data-rows @pointerenter=${() => { isHeld = true; }} @pointerleave=${release}>${repeat(rows, (row) => row.id, arrival)}</ol>`
      : empty("Nothing has arrived since you opened this page", "Each click, order and rejection shows here the moment it is on disk. Send one to the collector, at port 8081 unless click_port says otherwise:", `curl -i '${clickUrl}/aclick?client_id=shop-1&cli_ubid=me&utm_source=newsletter&event_time=${Date.now()}'`)}`,
  { note: html`<span class="live ${state}"><i></i>${{ live: "as it happens", connecting: "connecting", paused: "paused while hidden" }[state]}</span>` });
}

function checker() {
  const { click, clientId, sellerId } = filters(KNOWN);
  return card("checker", "Check a landing page", html`<form class="card-body stack" @submit=${submit}>
      <label class="filter"><span>Address of a landing page or of a click, a query, or a line of a server's log</span><textarea class="checked" name="click" rows="4" required spellcheck="false" placeholder="https://shop.example/?utm_source=facebook&utm_campaign=spring" .value=${click}></textarea></label>
      <div class="filter-bar"><label class="filter"><span>Client of the tag</span><input name="clientId" .value=${clientId} placeholder="data-client-id" size="14"></label><label class="filter"><span>Seller of the tag</span><input name="sellerId" .value=${sellerId} placeholder="data-seller-id" size="14"></label><button class="button primary" ?disabled=${isAsking}>${isAsking ? "Asking …" : "Check"}</button></div></form>
    <div class="card-body stack">${wrong ? fault(wrong) : told ? verdict(told.check, told.asked) : html`<p class="under">The collector's own parser judges it, by the accounts of this service. Nothing is kept.</p>`}</div>`, { note: "nothing is kept" });
}

export const view = () => html`<div class="page clicks"><h1 class="visually-hidden">Clicks</h1>${ignoredFilters(filters(KNOWN).ignored)}<div class="pair">${live()}${checker()}</div></div>`;
