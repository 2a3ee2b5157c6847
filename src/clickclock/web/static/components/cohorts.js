// Cohorts: customers by the month of their first order, and how many of them ordered again in each month since.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { withChosen } from "../core/address.js";
import { monthOf } from "../core/time.js";
import { chip, gauge, money, NO_CHANNEL } from "./credit.js";
import { heat } from "./heat.js";
import { card, counted, empty, number } from "./parts.js";

const MONTHS_MAX = 36;
const share = (part, all) => (all ? part / all : 0);
const words = (part, all) => (all ? `${Math.round(share(part, all) * 100)} %` : number(part));

/** The sums of the rows of one month of one cohort. Customers of different channels are different people: each has one first order. */
const sums = (rows) => ({
  customers: rows.reduce((all, each) => all + each.customers, 0), orders: rows.reduce((all, each) => all + each.orders, 0),
  revenue: rows.reduce((all, each) => all + Number(each.revenue), 0).toFixed(rows[0]?.revenue.split(".")[1]?.length ?? 0),
});
const since = (month) => (month ? `${counted(month, "month")} later` : "in their first month");

/** `rows` are those of the answer, `chosen` is what the address says: `currency`, `cohort` (a first month) and `month`. */
export function cohorts(rows, chosen) {
  if (!rows.length) return empty("No customer is known", "A cohort begins with a first order of somebody who is known. Orders of nobody that is known are left out.");
  const currencies = [...new Set(rows.map((each) => each.currency))].sort(), currency = currencies.includes(chosen.currency) ? chosen.currency : currencies[0];
  const mine = rows.filter((each) => each.currency === currency), firsts = [...new Set(mine.map((each) => each.firstMonth))].sort().reverse();
  const months = Math.min(MONTHS_MAX, Math.max(...mine.map((each) => each.month)) + 1), last = firsts[0] ? Math.max(...mine.map((each) => reach(each))) : 0;
  const at = (first, month) => mine.filter((each) => each.firstMonth === first && each.month === month);
  const cells = (first) => Array.from({ length: months }, (_, month) => {
    if (placeOf(first) + month > last) return null;   // that month has not come yet
    const { customers, orders, revenue } = sums(at(first, month)), { customers: all } = sums(at(first, 0));
    return { share: share(customers, all), text: words(customers, all), href: withChosen({ cohort: first, month }), isChosen: first === chosen.cohort && String(month) === chosen.month,
      label: `First order in ${monthOf(first)}, ${since(month)}: ${counted(customers, "customer")}${all ? ` of ${number(all)}` : ""}, ${counted(orders, "order")}, ${revenue} ${currency}` };
  });
  const first = firsts.includes(chosen.cohort) ? chosen.cohort : firsts[0], month = Number(chosen.month) || 0;
  return html`${card("cohorts", "Who came back", heat({ label: "Cohorts", corner: "First order", columns: Array.from({ length: months }, (_, each) => (each ? `+${each}` : "Month 0")), rows: firsts.map((each) => ({ head: monthOf(each), cells: cells(each) })) }),
    { note: `customers of each month since their first order, in ${currency}`, more: currencies.length > 1 ? html`<span class="tabs">${currencies.map((each) => html`<a class="button small" href=${withChosen({ currency: each })} aria-current=${each === currency ? "true" : nothing}>${each}</a>`)}</span>` : nothing })}
    ${byChannel(first, month, at(first, month), at(first, 0), currency)}`;
}
const placeOf = (first) => Number(first.slice(0, 4)) * 12 + Number(first.slice(5));
const reach = ({ firstMonth, month }) => placeOf(firstMonth) + month;

/** One cell of the grid, by the channel that the first order is credited to. */
function byChannel(first, month, rows, start, currency) {
  const size = new Map(start.map((each) => [each.channel, each.customers])), top = Math.max(1, ...rows.map((each) => each.customers));
  const title = `${monthOf(first)}, ${since(month)}`;
  return card("cohort", title, rows.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="The cohort by channel"><table class="numbers" data-rows><thead><tr>
    <th scope="col">First channel</th><th scope="col" class="bar-column"><span class="visually-hidden">Share</span></th>${["Customers", "Of the cohort", "Orders", "Revenue", "Refunds"].map((word) => html`<th scope="col" class="num">${word}</th>`)}</tr></thead>
    <tbody>${[...rows].sort((a, b) => b.customers - a.customers).map((each) => html`<tr data-row><th scope="row">${each.channel == null ? html`<span class="faint">${NO_CHANNEL}</span>` : chip(each.channel)}</th><td>${gauge(each.customers / top)}</td><td class="num">${number(each.customers)}</td>
      <td class="num">${size.get(each.channel) ? words(each.customers, size.get(each.channel)) : "–"}</td><td class="num">${number(each.orders)}</td><td class="num">${money(each.revenue, currency)}</td><td class="num ${Number(each.refunds) ? "" : "none"}">${money(each.refunds, currency)}</td></tr>`)}</tbody></table></div>`
    : html`<p class="note">Nobody of this cohort ordered in that month.</p>`, { note: "a cell of the grid above, by the first channel of the first order" });
}
