// The orders of a result version, latest first: the path of each, what its channels got, and the way to its proof.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { at, field, FIRST_STEPS, isUnmade, modelName, money, path, select, splitBar } from "../components/credit.js";
import { card, empty, fault, ignoredFilters, time, waiting } from "../components/parts.js";
import { choose, filters, to, withChosen } from "../core/address.js";
import { ask } from "../core/api.js";
import { ms } from "../core/time.js";

const OF = ["clientId", "sellerId", "channel", "campaign", "adSet", "ad", "kind", "currency", "reason"];
const KNOWN = [...OF, "from", "to", "credited", "model", "version"];
const WORDS = { clientId: "client", sellerId: "seller", channel: "channel", campaign: "campaign", adSet: "ad set", ad: "ad", kind: "kind", currency: "currency", reason: "reason" };
const STATUS = { completed: "", refunded: "refunded", partially_refunded: "partly refunded", cancelled: "cancelled" };
let found = null, wrong = null, more = null, isAsking = false, stop = new AbortController(), again = () => {}, redraw = () => {};

export const title = () => "Orders";

export function enter(draw) {
  redraw = draw;
  again = () => {
    stop.abort();
    stop = new AbortController();
    page(null, stop.signal).then((first) => { found = first; wrong = null; }, failed).then(draw);
  };
  again();
  return () => stop.abort();
}
const failed = (error) => { if (error.name !== "AbortError") wrong = error; };
const set = (changed) => { choose(changed, { push: true }); again(); };

/** A page; an empty filter that the address has is sent, for it means "none". */
async function page(cursor, signal) {
  const given = filters(KNOWN), said = new URLSearchParams(location.search);
  const asked = new URLSearchParams(OF.filter((name) => said.has(name)).map((name) => [name, given[name]]));
  for (const name of ["from", "to", "credited", "model", "version"]) if (given[name]) asked.set(name, given[name]);
  if (cursor) asked.set("cursor", cursor);
  return { ...(await ask(`/attribution/orders?${asked}`, {}, signal)), given, said };
}

function next() {
  isAsking = true;
  page(found.nextCursor, stop.signal).then((then) => { found = { ...then, orders: [...found.orders, ...then.orders] }; more = null; }, (error) => { more = error; })
    .then(() => { isAsking = false; redraw(); });
  redraw();
}

function bar() {
  const { given, said } = found, set_ = OF.filter((name) => said.has(name) && name !== "clientId");
  return html`<form class="filter-bar" aria-label="Which orders" @submit=${(event) => event.preventDefault()}>
    <label class="filter"><span>Open an order</span><input data-find placeholder="its id" size="14" @change=${(event) => open(event.target.value.trim())}></label>
    ${field("Client", given.clientId, (clientId) => set({ clientId }), { size: 12, placeholder: "all" })}
    ${field("From", given.from, (from) => set({ from }), { type: "date" })}${field("To", given.to, (to_) => set({ to: to_ }), { type: "date" })}
    ${select("Credited", given.credited, [["", "or not"], ["true", "with a touchpoint"], ["false", "without one"]], (credited) => set({ credited }))}
    ${set_.map((name) => html`<span class="filter"><span>${WORDS[name]}</span><a class="button" href=${withChosen({ [name]: "" })} aria-label="Remove the filter ${WORDS[name]}"><bdi>${given[name] || "none"}</bdi> ✕</a></span>`)}</form>`;
}

/** An order by its id; whose it is, is the client of the filter or of the first order here. */
function open(orderId) {
  const clientId = found.given.clientId || found.orders[0]?.clientId;
  if (!orderId || !clientId) return;
  history.pushState(null, "", at(to("/attribution/orders", clientId, orderId), { version: found.given.version || null }));
  dispatchEvent(new PopStateEvent("popstate"));
}

function parts(order, model) {
  const whole = Number(order.amount), given = order.credits[model] ?? {};
  return Object.entries(given).map(([channel, credit]) => ({ id: channel, name: channel, channel, credit: `${credit} ${order.currency}`, share: whole ? Number(credit) / whole : 0, word: channel }));
}

const row = (order) => {
  const model = found.models[0];
  return html`<tr data-row><th scope="row"><a href=${at(to("/attribution/orders", order.clientId, order.orderId), { version: found.given.version || null })}><bdi>${order.orderId}</bdi></a><span class="under"><bdi>${order.clientId}</bdi>${order.sellerId ? html` · <bdi>${order.sellerId}</bdi>` : nothing}</span></th>
    <td class="placed">${time(ms(order.placedAt))}</td><td class="num">${money(order.amount, order.currency)}${STATUS[order.status] ? html`<span class="under">${STATUS[order.status]}${Number(order.refunded) ? ` ${order.refunded}` : ""}</span>` : nothing}</td>
    <td class="broad">${path(order.path, order.touchpoints)}</td><td class="split-cell broad">${order.touchpoints ? splitBar(parts(order, model), { label: `${modelName(model)}: ${parts(order, model).map((each) => `${each.name} ${each.credit}`).join(", ")}` }) : html`<span class="under">${order.reason?.replaceAll("_", " ")}</span>`}</td></tr>`;
};

export function view() {
  if (isUnmade(wrong)) return html`<div class="page"><h1>Orders</h1>${empty("No order is credited yet", "Every order of a result version will be here, with the path that led to it and the proof of its credit.", FIRST_STEPS())}</div>`;
  if (wrong) return html`<div class="page"><h1>Orders</h1>${fault(wrong)}</div>`;
  if (!found) return waiting("Orders");
  return html`<div class="page orders"><div class="page-head"><h1>Orders</h1><span class="faint">result version ${found.version}</span></div>
    ${ignoredFilters(filters(KNOWN).ignored)}${bar()}
    ${found.orders.length ? card("list", "Latest first", html`<div class="table-box" tabindex="0" role="region" aria-label="Orders"><table class="numbers cards" data-rows><thead><tr><th scope="col">Order</th><th scope="col">Placed</th><th scope="col" class="num">Amount</th><th scope="col">Path</th><th scope="col">Credit by ${modelName(found.models[0])}</th></tr></thead>
      <tbody>${repeat(found.orders, (each) => `${each.clientId}\x1f${each.orderId}`, row)}</tbody></table></div>
      ${more ? fault(more) : nothing}${found.nextCursor ? html`<p class="note"><button class="button" ?disabled=${isAsking} @click=${next}>${isAsking ? "Asking …" : "Show more"}</button></p>` : html`<p class="note faint">That is all of them.</p>`}`, { count: found.orders.length })
      : empty("No order fits", "No order of this version has these filters. An order that came just now is here after the next run.", `clickclock attribution run`)}</div>`;
}
