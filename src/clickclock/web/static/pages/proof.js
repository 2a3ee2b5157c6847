// The proof of an order's credit, drawn: every click on the time axis with its fate, the windows, what makes the clicks one
// person's, and how each model divides the amount.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { at, amount, isUnmade, modelName, money, splitBar, toneOf } from "../components/credit.js";
import { card, empty, fault, ignoredFilters, waiting } from "../components/parts.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { full, ms } from "../core/time.js";

const DAY = 86_400_000;
const FATES = {
  in_journey: "counts", shared_identifier: "shared identifier", retry: "sent again", repeat: "repeated", click_id_spent: "click id used before", bot: "a bot",
  prefetch: "a prefetch", flood: "a flood", counted: "counts", not_before_order: "after the order", outside_window: "outside the window", other_seller: "another seller", too_soon: "too soon before", gave_way: "a click counts",
};
let proof = null, wrong = null, over = null, mine = "", redraw = () => {};

export const title = () => (proof ? `Order ${proof.orderId}` : "Order");

export function enter(draw, { clientId, orderId }) {
  redraw = draw;
  const key = `${clientId}\x1f${orderId}`, stop = new AbortController();
  if (key !== mine) proof = null;
  [mine, wrong, over] = [key, null, null];
  ask("/attribution/order", { clientId, orderId, version: filters(["version"]).version }, stop.signal)
    .then((told) => { proof = told.proof; }, (error) => { if (error.name !== "AbortError") wrong = error; }).then(draw);
  return () => stop.abort();
}

const placeOf = (id) => proof.journey.indexOf(id) + 1;
const point = (id) => { over = id; redraw(); };
const state = (id) => (over === id ? "over" : over ? "dim" : "");
const lane = (click) => (click.kind === "view" ? `${click.channel}, seen` : click.channel);
const hasViews = () => proof.clicks.some((click) => click.kind === "view");
const windowOf = (click) => (click.kind === "view" ? `${Math.round(click.windowDays * 24)} hours` : `${click.windowDays} days`);
const days = (value) => `${value >= 10 ? Math.round(value) : Number(value.toFixed(1))} d`;

function scale() {
  const order = ms(proof.order.placedAt), times = proof.clicks.map((click) => ms(click.time)), first = Math.min(...times, order - 2 * DAY), last = Math.max(order, ...times);
  const from = first - (last - first) * 0.04, until = last + (last - first) * 0.07;
  return { order, from, until, x: (instant) => ((instant - from) / (until - from)) * 100 };
}

function track(name, { order, from, x }) {
  const clicks = proof.clicks.filter((click) => lane(click) === name), begins = Math.max(from, order - clicks[0].windowDays * DAY);
  return html`<div class="journey-row"><div class="journey-name"><b><bdi>${name}</bdi></b><span class="under">${windowOf(clicks[0])}</span></div>
    <svg class="journey-track ${toneOf(clicks[0].channel)}" aria-hidden="true"><rect class="window-band" x="${x(begins)}%" width="${x(order) - x(begins)}%" y="5" height="52" rx="6" /><line class="rail" x1="0" x2="100%" y1="26" y2="26" />
      ${clicks.toSorted((a, b) => placeOf(a.id) - placeOf(b.id)).map((click) => {
        const place = placeOf(click.id), here = x(ms(click.time)), isLonely = !place && here < 78 && clicks.every((other) => other === click || Math.abs(x(ms(other.time)) - here) > 14);
        return svg`<svg x="${here}%" y=${place ? 26 : 46} class="touch ${state(click.id)}" @mouseenter=${() => point(click.id)} @mouseleave=${() => point(null)}>
          ${place ? svg`<circle r="12" class="counts" /><text class="place" text-anchor="middle" y="4.5">${place}</text>` : svg`<circle r="7" class="not" /><path class="not" d="M-4.5 4.5 4.5-4.5" />${isLonely ? svg`<text class="fate" x="12" y="4">${FATES[click.fate] ?? click.fate}</text>` : ""}`}
          <title>${full(ms(click.time))}: ${click.why}</title></svg>`;
      })}</svg></div>`;
}

function journey() {
  if (!proof.clicks.length) return html`<p class="note">${proof.why ?? "No click is known of this person."}</p>`;
  const axis = scale(), { order, from, until, x } = axis, span = (until - from) / DAY, step = [0.25, 0.5, 1, 2, 7, 14, 30].find((each) => span / each < 9) ?? 60, marks = [];
  for (let day = 0; order - day * DAY > from; day += step) marks.push(day);
  const lanes = [...new Set(proof.clicks.map(lane))];
  return html`<div class="journey" role="group" aria-label="The journey on a time axis; the table of clicks says the same in words">
    ${lanes.map((name) => track(name, axis))}
    <div class="journey-row days"><div></div><svg class="journey-days" aria-hidden="true">${marks.map((day, i) => svg`<text x="${x(order - day * DAY)}%" y="12" text-anchor="middle" class=${day ? (i % 3 ? "minor" : "") : "now-word"}>${day ? `${days(day)} before` : "order"}</text>`)}</svg></div>
    <div class="order-line" .style=${`--at:${x(order) / 100}`}></div></div>`;
}

function credits() {
  const touches = proof.credits[0]?.touchpoints ?? [];
  if (!touches.length) return html`<p class="note">${proof.why ?? "It has no touchpoint, so that no model credits anybody."}</p>`;
  const { currency } = proof.order;
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Credit by model"><table class="numbers models"><thead><tr><th scope="col">Model</th><td></td>
    ${touches.map((touch) => html`<th scope="col" class="num ${state(touch.click)}"><span class="dot ${toneOf(touch.channel)}">${touch.place}</span> <bdi>${touch.channel}</bdi></th>`)}</tr></thead>
    <tbody>${proof.credits.map((credit) => html`<tr><th scope="row">${modelName(credit.model)}${credit.fitted ? html`<span class="under">learnt from ${credit.fitted.month}</span>` : nothing}</th>
      <td class="split-cell">${splitBar(credit.touchpoints.map((touch) => ({ ...touch, id: touch.click, name: `${touch.place}, ${touch.channel}`, credit: `${touch.credit} ${currency}`, word: String(touch.place) })), { over, point })}</td>
      ${credit.touchpoints.map((touch) => html`<td class="num ${touch.share ? "" : "none"} ${state(touch.click)}" title="weight ${touch.weight} of ${credit.sumOfWeights}: exactly ${touch.exact} ${currency}${touch.isRoundedUp ? ", rounded up" : ""}${Number(touch.refund) ? `; refunded ${touch.refund}` : ""}">${amount(touch.credit)}</td>`)}</tr>`)}</tbody></table></div>`;
}

const identifier = ({ kind, value }) => html`<span class="identifier"><span class="under">${kind}</span> <code><bdi>${value}</bdi></code></span>`;
const several = (list, one, many) => (list.length ? `${list.length} ${list.length > 1 ? many : one}` : "");

function person() {
  const { person: who, sharedIdentifiers, crowdedDevices } = proof;
  return card("person", "Whose clicks these are", html`<div class="card-body stack">
    ${who ? html`<ul class="identifiers">${who.identifiers.map((each) => html`<li>${identifier(each)}</li>`)}</ul>
      ${who.links.length ? html`<ul class="links">${who.links.map((link) => html`<li>${identifier(link.between[0])} <span aria-hidden="true">↔</span><span class="visually-hidden">and</span> ${identifier(link.between[1])}
        <span class="under">seen together on ${[several(link.clicks, "click", "clicks"), several(link.orders, "order", "orders"), several(link.identifications, "identification", "identifications")].filter(Boolean).join(", ")}</span></li>`)}</ul>`
      : html`<p class="under">One identifier makes this person; nothing else was seen with it.</p>`}` : html`<p>${proof.why}</p>`}
    ${[...sharedIdentifiers, ...crowdedDevices].map((each) => html`<p class="under">${identifier(each)} ${each.why}</p>`)}</div>`);
}

const amendments = () => card("amendments", "What the shop said of it", html`<ol class="card-body stack">${proof.amendments.map((each) => html`<li class="under"><b>${each.status.replaceAll("_", " ")}</b> ${money(each.amount, each.currency)}${Number(each.refunded) ? html`, refunded ${money(each.refunded, each.currency)}` : nothing}, ${full(ms(each.time))}</li>`)}</ol>`);

const clicks = () => card("fates", hasViews() ? "Every click and view, and its fate" : "Every click, and its fate", html`<div class="table-box" tabindex="0" role="region" aria-label="Clicks"><table class="numbers fates"><thead><tr>${["#", "When", "Before the order", "Channel", "Campaign", "Fate", "Why"].map((word) => html`<th scope="col">${word}</th>`)}</tr></thead><tbody data-rows>
  ${proof.clicks.map((click) => { const place = placeOf(click.id); return html`<tr class=${state(click.id)} @mouseenter=${() => point(click.id)} @mouseleave=${() => point(null)}><td>${place ? html`<span class="dot ${toneOf(click.channel)}">${place}</span>` : nothing}</td><td>${full(ms(click.time))}</td><td>${click.daysBeforeOrder >= 0 ? days(click.daysBeforeOrder) : `${days(-click.daysBeforeOrder)} after`}</td><td><bdi>${lane(click)}</bdi></td><td><bdi>${click.campaign ?? "–"}</bdi></td>
    <td class=${place ? "yes" : "no"}>${FATES[click.fate] ?? click.fate.replaceAll("_", " ")}</td><td class="why">${click.why}</td></tr>`; })}</tbody></table></div>`, { count: proof.clicks.length });

export function view() {
  if (wrong) return html`<div class="page"><h1>Order</h1>${isUnmade(wrong) ? empty("No proof yet", "No order is credited yet.", "clickclock attribution run") : fault(wrong)}<p><a class="button" href="/attribution/orders">To the orders</a></p></div>`;
  if (!proof) return waiting("Order");
  const { order, result } = proof;
  return html`<div class="page proof"><nav class="crumbs" aria-label="Where you are"><a href="/attribution/orders">Orders</a><span class="faint">›</span><a href=${at("/attribution/orders", { clientId: proof.clientId })}><bdi>${proof.clientId}</bdi></a></nav>
    <div class="proof-head"><div><p class="under">result version ${result.version}</p><h1>Order <bdi>${proof.orderId}</bdi></h1></div>
      <dl class="proof-facts"><div><dt>Amount</dt><dd>${money(order.amount, order.currency)}</dd></div><div><dt>Refunded</dt><dd>${amount(order.refunded)}</dd></div><div><dt>Status</dt><dd>${order.status.replaceAll("_", " ")}</dd></div><div><dt>Placed</dt><dd>${full(ms(order.placedAt))}</dd></div><div><dt>${hasViews() ? "Clicks and views" : "Clicks"}</dt><dd>${proof.journey.length} of ${proof.clicks.length} count</dd></div></dl></div>
    ${ignoredFilters(filters(["version"]).ignored)}
    ${proof.differs.length ? html`<p class="banner" role="alert">What is stored differs from what was just computed in ${proof.differs.length} ${proof.differs.length > 1 ? "places" : "place"}. ${result.kind === "erasure" ? "Some of it was erased since; the next run credits anew." : "Please report it, with the answer of the interface."}</p>` : nothing}
    ${card("journey", "The journey", journey(), { note: "a band is the time within which a click of that channel counts" })}
    ${card("split", "What each model makes of it", credits(), { note: `to the minor unit; each row sums up to ${order.amount}` })}
    ${clicks()}<div class="pair">${person()}${amendments()}</div></div>`;
}
