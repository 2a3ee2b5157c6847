// Paths: the commonest ways to an order, how many clicks orders take, and how long they take.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { at, field, FIRST_STEPS, gauge, isUnmade, money, path } from "../components/credit.js";
import { card, empty, fault, ignoredFilters, number, waiting } from "../components/parts.js";
import { choose, filters } from "../core/address.js";
import { ask } from "../core/api.js";

const KNOWN = ["clientId", "sellerId", "channel", "campaign", "adSet", "ad", "kind", "currency", "from", "to", "version"];
const HOURS = { 1: "1 hour", 6: "6 hours", 24: "1 day", 72: "3 days", 168: "7 days", 336: "14 days", 720: "30 days" };
let found = null, wrong = null, again = () => {};

export const title = () => "Paths";

export function enter(draw) {
  let stop = new AbortController();
  again = () => {
    stop.abort();
    stop = new AbortController();
    const { ignored, ...asked } = filters(KNOWN);
    ask("/attribution/paths", { ...asked, limit: 50 }, stop.signal).then((answer) => { [found, wrong] = [answer, null]; }, (error) => { if (error.name !== "AbortError") wrong = error; }).then(draw);
  };
  again();
  return () => stop.abort();
}
const set = (changed) => { choose(changed, { push: true }); again(); };

const hours = (value) => (value == null ? "–" : value < 48 ? `${value.toFixed(1)} h` : `${(value / 24).toFixed(1)} d`);

function bar() {
  const given = filters(KNOWN);
  return html`<form class="filter-bar" aria-label="Which orders" @submit=${(event) => event.preventDefault()}>${field("From", given.from, (from) => set({ from }), { type: "date" })}${field("To", given.to, (to) => set({ to }), { type: "date" })}
    ${field("Client", given.clientId, (clientId) => set({ clientId }), { placeholder: "all" })}${field("Through channel", given.channel, (channel) => set({ channel }), { placeholder: "any" })}</form>`;
}

/** Counts by their upper bounds, as bars beside words. */
function histogram(id, title_, buckets, word, note) {
  const top = Math.max(1, ...buckets.map((each) => each.orders)), all = buckets.reduce((sum, each) => sum + each.orders, 0);
  return card(id, title_, html`<ol class="card-body counts-list">${buckets.map((each, i) => html`<li><span>${each.upTo == null ? `more than ${word(buckets[i - 1].upTo)}` : word(each.upTo)}</span>${gauge(each.orders / top)}<span class="num">${number(each.orders)}</span><span class="num faint">${all ? `${Math.round((each.orders / all) * 100)} %` : ""}</span></li>`)}</ol>`, { note });
}

export function view() {
  if (isUnmade(wrong)) return html`<div class="page"><h1>Paths</h1>${empty("No order is credited yet", "The channels that people came by, in their order, will be here.", FIRST_STEPS())}</div>`;
  if (wrong && !found) return html`<div class="page"><h1>Paths</h1>${fault(wrong)}</div>`;
  if (!found) return waiting("Paths");
  const top = Math.max(1, ...found.paths.map((each) => each.orders)), { clientId, from, to } = filters(KNOWN);
  return html`<div class="page paths"><div class="page-head"><h1>Paths</h1><span class="faint">result version ${found.version}</span></div>${wrong ? fault(wrong) : nothing}${ignoredFilters(filters(KNOWN).ignored)}${bar()}
    ${found.paths.length ? html`<div class="pair">${histogram("steps", "Clicks before an order", found.steps, (steps) => `${steps} ${steps === 1 ? "click" : "clicks"}`, "those that count")}${histogram("hours", "Time to the order", found.hours, (each) => `${HOURS[each] ?? `${each} hours`}`, "from the first click that counts, at most")}</div>
      ${card("paths", "The commonest paths", html`<div class="table-box" tabindex="0" role="region" aria-label="Paths"><table class="numbers" data-rows><thead><tr><th scope="col">Path</th><th scope="col" class="bar-column"><span class="visually-hidden">Share</span></th>${["Orders", "Revenue", "Time to the order"].map((word) => html`<th scope="col" class="num">${word}</th>`)}</tr></thead>
        <tbody>${found.paths.map((each) => html`<tr data-row><th scope="row">${path(each.path)}</th><td>${gauge(each.orders / top)}</td><td class="num">${number(each.orders)}</td><td class="num">${money(each.revenue, each.currency)}</td><td class="num">${hours(each.hours)}</td></tr>`)}</tbody></table></div>`,
      { count: found.paths.length, more: html`<a class="more" href=${at("/attribution/orders", { clientId: clientId || null, from: from || null, to: to || null, credited: "true" })}>The orders</a>` })}` : empty("No order with a path", "No credited order fits these filters.")}</div>`;
}
