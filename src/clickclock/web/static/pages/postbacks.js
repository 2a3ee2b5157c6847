// The calls to partners, each with what became of it, and what partners are called about next.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { money, FIRST_STEPS } from "../components/credit.js";
import { filterBar } from "../components/filter-bar.js";
import { card, counted, empty, fault, ignoredFilters, number, time, waiting } from "../components/parts.js";
import { fates, kindOf, kinds, OF_PARTNERS } from "../components/uploads.js";
import { to } from "../core/address.js";
import { listing } from "../core/listing.js";
import { glyph } from "../core/states.js";
import { ms } from "../core/time.js";

const NAMES = ["partner", "clientId", "orderId", "state"];
const STATES = { waiting: ["queued", "waiting"], taken: ["succeeded", "taken"], refused: ["failed", "refused"], gave_up: ["failed", "given up"] };
const FIELDS = [{ name: "partner", label: "Partner", placeholder: "all" }, { name: "state", label: "State", options: [["", "all"], ...Object.entries(STATES).map(([name, [, word]]) => [name, word])] },
  { name: "clientId", label: "Client", placeholder: "all" }, { name: "orderId", label: "Order", placeholder: "all" }];
const TABLE = '[[postback]]\nname = "affiliate"\nurl = "https://partner.example/s2s?click={click.subid}&order={order_id}&amount={credit}"';
const list = listing("/attribution/postbacks", NAMES, 200);

export const title = () => "Postbacks";

export const enter = list.enter;

const partner = ({ partner: name, model, kinds: next, fates: held }) => card(`next-${name}`, name, html`<div class="card-body stack"><p>${Object.keys(next).length ? html`It is called next about <b>${kinds(next)}</b>.` : "There is nothing new for it."}</p>
  ${fates(held, OF_PARTNERS)}</div>`, { note: `by the model “${model}”` });

function row(each) {
  const [look, word] = STATES[each.state] ?? ["queued", each.state];
  return html`<tr data-row><td class="cell-name"><a href=${to("/attribution/orders", each.clientId, each.orderId)}><bdi>${each.orderId}</bdi></a> <bdi class="faint">${each.clientId}</bdi></td><td>${each.partner}</td><td>${kindOf(each.kind)}</td>
    <td class="num">${money(each.credit, each.currency)}</td><td>${time(ms(each.writtenAt))}</td><td>${glyph(look)} ${word}<span class="under">${each.attempts ? html`${counted(each.attempts, "attempt")}, ${time(ms(each.attemptedAt))}` : "not sent yet"}</span></td><td class="cell-why">${each.why ?? nothing}</td></tr>`;
}

const calls = () => card("calls", "Calls", list.told.postbacks.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="All calls"><table class="stacked" data-rows>
    <thead><tr><th scope="col">Order</th><th scope="col">Partner</th><th scope="col">What it tells</th><th scope="col" class="num">Credit</th><th scope="col">Decided</th><th scope="col">State</th><th scope="col">Answer</th></tr></thead><tbody>${repeat(list.told.postbacks, ({ id }) => id, row)}</tbody></table></div>${list.told.hasMore ? html`<p class="note">There are older ones. Choose a partner, a state or an order.</p>` : nothing}`
  : NAMES.some((name) => list.chosen[name]) ? empty("No call fits", "Take a filter away.")
    : list.told.next.partners.length ? empty("No partner was called yet", "The job attribution/postbacks calls partners every quarter of an hour. Call them now:", "clickclock attribution postbacks send")
      : empty("No partner is configured", "A partner is called for each order that its clicks earned. Name it in the configuration:", TABLE), { count: number(list.told.postbacks.length) });

export function view() {
  if (!list.told && !list.wrong) return waiting("Postbacks");
  return html`<div class="page"><div class="page-head"><h1>Postbacks</h1>${list.told?.next.version ? html`<span class="faint">result version ${list.told.next.version}</span>` : nothing}</div>${ignoredFilters(list.chosen.ignored ?? [])}${filterBar(FIELDS, list.chosen, list.load)}${list.wrong ? fault(list.wrong) : nothing}
    ${list.told ? html`${list.told.next.partners.length ? list.told.next.version ? html`<div class="pair">${list.told.next.partners.map(partner)}</div>` : html`<section class="card">${empty("Nothing is credited yet", "Partners are told what orders were credited to their clicks.", FIRST_STEPS())}</section>` : nothing}${calls()}` : nothing}</div>`;
}
