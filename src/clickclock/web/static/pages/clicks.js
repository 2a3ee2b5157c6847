// What came: minute by minute, step by step to credit, and each click as it arrives; and the checker, which keeps nothing.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { arrivalRows } from "../components/arrivals.js";
import { field, select } from "../components/credit.js";
import { card, empty, fault, ignoredFilters } from "../components/parts.js";
import { columns, columnsKey, funnel, reasons } from "../components/traffic.js";
import { verdict } from "../components/verdict.js";
import { choose, filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { arrivals } from "../core/arrivals.js";
import { clickUrl } from "../core/collector.js";
import { currentZone, iso, now } from "../core/time.js";

const KNOWN = ["client", "kind", "span", "click", "clientId", "sellerId"];
const KINDS = [["", "everything"], ["click", "clicks"], ["view", "views"], ["rejection", "rejections"], ["order", "orders"]];
const SPANS = { "": ["last hour", 3_600_000, "minute by minute"], "6h": ["last 6 hours", 21_600_000, "minute by minute"], "24h": ["last 24 hours", 86_340_000, "minute by minute"], "7d": ["last 7 days", 604_800_000, "hour by hour"], "30d": ["last 30 days", 2_592_000_000, "hour by hour"] };
const ROWS_MAX = 200, FIRST_ROWS = 50, AGAIN_MS = 30_000;
let rows = [], held = [], isHeld = false, state = "connecting", gap = null, told = null, wrong = null, isAsking = false, count = null, countFault = null, isStale = false, asked = 0, isKnown = false, redraw = () => {}, unwatch = () => {};

export const title = () => "Clicks";

export function enter(draw) {
  redraw = draw;
  [rows, held, gap, count, countFault] = [[], [], null, null, null];
  watch();
  tally();
  const { click, clientId, sellerId } = filters(KNOWN);
  if (click) look({ click, clientId, sellerId });
  else [told, wrong] = [null, null];
  // Where nothing came, the counts are what they were, but for the minutes that have gone by.
  const again = setInterval(() => document.hidden || !isStale || tally(), AGAIN_MS);
  return () => { unwatch(); clearInterval(again); };
}

/** The last ones at once, and each one from now on; who is in both is shown once. */
function watch() {
  unwatch();
  const { client, kind } = filters(KNOWN);
  const chosen = { ...(client && { clientId: client }), ...(kind && { kind }) };
  const mine = arrivals(chosen, (heard) => {
    if (heard.state) state = heard.state;
    else if (heard.missed) gap = heard.missed;
    else { isStale = true; put([heard]); }
    redraw();
  });
  [unwatch, isKnown] = [mine, false];
  ask("/attribution/clicks", { ...chosen, limit: FIRST_ROWS }).then(({ clicks }) => { if (unwatch === mine) put(clicks); }, () => {}).then(() => { if (unwatch === mine) { isKnown = true; redraw(); } });
}

function put(some) {
  const known = new Set([...rows, ...held].map(({ id }) => id)), fresh = some.filter(({ id }) => !known.has(id));
  if (isHeld) held = sorted([...fresh, ...held]);
  else rows = sorted([...fresh, ...rows]);
}
const sorted = (some) => some.sort((a, b) => (a.receivedAt < b.receivedAt ? 1 : a.receivedAt > b.receivedAt ? -1 : a.id < b.id ? 1 : -1)).slice(0, ROWS_MAX);

async function tally() {
  const mine = ++asked, { client, span } = filters(KNOWN), [, width] = SPANS[span] ?? SPANS[""];
  isStale = false;
  try {
    const found = (await ask("/attribution/funnel", { from: iso(now() - width), to: iso(now()), clientId: client })).funnel;
    if (mine === asked) [count, countFault] = [found, null];
  } catch (error) { if (mine === asked) countFault = error; }
  redraw();
}

function release() {
  isHeld = false;
  rows = sorted([...held, ...rows]);
  held = [];
  redraw();
}

function choice(changed) {
  choose(changed, { push: true });
  if ("client" in changed || "kind" in changed) { [rows, held, gap] = [[], [], null]; watch(); }
  if (!("kind" in changed)) tally();
  redraw();
}

function look(asked) {
  isAsking = true;
  redraw();
  ask("/attribution/check", asked).then(({ check }) => { [told, wrong] = [{ check, asked }, null]; }, (error) => { [told, wrong] = [null, error]; }).then(() => { isAsking = false; redraw(); });
}

function submit(event) {
  event.preventDefault();
  const asked = Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, String(value).trim()]));
  choose(asked, { push: true });
  look(asked);
}

function counts() {
  const { span } = filters(KNOWN), [word, , by] = SPANS[span] ?? SPANS[""];
  if (countFault && !count) return fault(countFault);
  return html`${countFault ? fault(countFault) : nothing}${card("minutes", by[0].toUpperCase() + by.slice(1), html`<div class="card-body">${count ? columns(count) : html`<p class="note chart-room">Counting …</p>`}</div>`, { note: `${word}, ${currentZone()}`, more: columnsKey() })}
    <div class="pair">${card("funnel", "From click to credit", count ? funnel(count) : html`<p class="note chart-room">Counting …</p>`, { note: word })}
      ${card("reasons", "Why clicks were refused", count ? reasons(count) : html`<p class="note chart-room">Counting …</p>`, { note: word })}</div>`;
}

function live() {
  const { client, kind } = filters(KNOWN);
  return card("live", "What arrives", html`<form class="filter-bar pad" aria-label="What is shown" @submit=${(event) => event.preventDefault()}>${select("Show", kind, KINDS, (value) => choice({ kind: value }))}</form>
    ${gap ? html`<p class="banner pad">${gap.message}</p>` : nothing}
    ${held.length ? html`<p class="pad"><button class="button" @click=${release}>${held.length} new</button></p>` : nothing}
    ${rows.length ? arrivalRows(rows, () => { isHeld = true; }, release) : !isKnown ? html`<p class="note chart-room">Looking …</p>`
      : empty(client || kind ? "Nothing of this has come in the last 31 days" : "Nothing has come yet", clickUrl ? "Each click, order and rejection shows here the moment it is on disk. Send one to the collector:" : "This service takes no clicks. Set clicks = true in its configuration, and start it again.", clickUrl ? `curl -i '${clickUrl}/aclick?client_id=shop-1&cli_ubid=me&utm_source=newsletter&event_time=${Date.now()}'` : "")}`,
  { note: html`<span class="live ${state}"><i></i>${{ live: "as it happens", connecting: "connecting", paused: "paused while hidden" }[state]}</span>` });
}

function checker() {
  const { click, clientId, sellerId } = filters(KNOWN);
  return card("checker", "Check a landing page", html`<form class="card-body stack" @submit=${submit}>
      <label class="filter"><span>Address of a landing page or of a click, a query, or a line of a server's log</span><textarea class="checked" data-find name="click" rows="4" required spellcheck="false" placeholder="https://shop.example/?utm_source=facebook&utm_campaign=spring" .value=${click}></textarea></label>
      <div class="filter-bar"><label class="filter"><span>Client of the tag</span><input name="clientId" .value=${clientId} placeholder="data-client-id" size="14"></label><label class="filter"><span>Seller of the tag</span><input name="sellerId" .value=${sellerId} placeholder="data-seller-id" size="14"></label><button class="button primary" ?disabled=${isAsking}>${isAsking ? "Asking …" : "Check"}</button></div></form>
    <div class="card-body stack">${wrong ? fault(wrong) : told ? verdict(told.check, told.asked) : html`<p class="under">The collector's own parser judges it, by the accounts of this service.</p>`}</div>`, { note: "nothing is kept" });
}

export function view() {
  const { client, span, ignored } = filters(KNOWN);
  return html`<div class="page clicks"><div class="page-head"><h1>Clicks</h1></div>${ignoredFilters(ignored)}
    <form class="filter-bar" aria-label="Which clicks" @submit=${(event) => event.preventDefault()}>${select("When", span, Object.entries(SPANS).map(([key, [word]]) => [key, word]), (value) => choice({ span: value }))}${field("Client", client, (value) => choice({ client: value }), { placeholder: "all" })}</form>
    ${counts()}<div class="pair">${live()}${checker()}</div></div>`;
}
