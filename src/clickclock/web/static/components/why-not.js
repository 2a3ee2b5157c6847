// Why orders are not credited: each reason with its orders, their revenue, and what can be done.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { gauge, money } from "./credit.js";
import { card, counted, number, percent, prose } from "./parts.js";

const REASONS = {
  no_click: ["No click is known", "No click has an identifier of the order. Look whether landing pages send clicks, and whether orders bring the same `cli_ubid` or `device_id`."],
  shared_identifier: ["Its identifiers belong to nobody", "They are shared by many people, or are words such as `test`. Send with each order an identifier of one person."],
  no_touchpoint: ["Clicks, but none counts", "Each click was a bot, a repetition or later than the order. An order's proof says which."],
  none_eligible: ["No click in time", "Each click was outside its window, for another seller, or under a second before the order. An order's proof says which."],
};

/** `rows` are a report's by `reason`, of one model. `listOf(row, more)` is the address of its orders to which `more` applies, too. */
export function whyNot(rows, listOf, beforeOf) {
  const all = new Map(), missing = new Map(), add = (sums, each) => sums.set(each.currency, (sums.get(each.currency) ?? 0) + (each.orders ?? 0));
  for (const each of rows) { add(all, each); if (each.reason) add(missing, each); }
  const bad = rows.filter((each) => each.reason).sort((a, b) => b.orders - a.orders), good = rows.filter((each) => !each.reason && each.orders);
  const top = Math.max(1, ...bad.map((each) => each.orders));
  const line = (each) => { const [word, what] = REASONS[each.reason] ?? [each.reason ?? "Credited", ""]; return html`<tr data-row><th scope="row">${word}${what ? html`<span class="under">${prose(what)}</span>` : nothing}</th>
    <td>${each.reason ? gauge(each.orders / top) : nothing}</td><td class="num"><a class="inline" href=${listOf(each, each.reason ? { reason: each.reason } : { credited: "true" })} aria-label=${`${counted(each.orders, "order")}: ${word}`}>${number(each.orders)}</a></td>${beforeOf ? html`<td class="num">${number(beforeOf(each)?.orders ?? 0)}</td>` : nothing}<td class="num">${percent(all.get(each.currency) ? each.orders / all.get(each.currency) : null)}</td><td class="num">${money(each.revenue, each.currency)}</td></tr>`; };
  return card("why-not", "Why it is not credited", html`${bad.length ? nothing : html`<p class="note">Every order has a touchpoint.</p>`}<div class="table-box" tabindex="0" role="region" aria-label="The reasons"><table class="numbers why-not" data-rows><thead><tr>
    <th scope="col">Reason</th><th scope="col" class="bar-column"><span class="visually-hidden">Share</span></th><th scope="col" class="num">Orders</th>${beforeOf ? html`<th scope="col" class="num">Before</th>` : nothing}<th scope="col" class="num">Of all</th><th scope="col" class="num">Revenue</th></tr></thead>
    <tbody>${bad.map(line)}${good.map(line)}</tbody></table></div>
    ${[...all].map(([currency, many]) => html`<p class="note"><span>${counted(missing.get(currency) ?? 0, "order")} of ${number(many)} in ${currency} ${(missing.get(currency) ?? 0) === 1 ? "has" : "have"} no touchpoint.${missing.get(currency) ? html` <a class="inline" href=${listOf({ currency }, { credited: "false" })}>Open these orders</a>` : nothing}</span></p>`)}`);
}
