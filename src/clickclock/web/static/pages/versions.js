// Result versions: what each run made, and what differs between two of them, order by order, with every cause.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { amount, at, FIRST_STEPS, gauge, isUnmade, modelName, money } from "../components/credit.js";
import { card, empty, fault, ignoredFilters, number, time, waiting } from "../components/parts.js";
import { choose, filters, to as address } from "../core/address.js";
import { ask } from "../core/api.js";
import { ms } from "../core/time.js";

const KNOWN = ["from", "to", "clientId", "model"];
const CAUSES = {
  new_order: "a new order", order_gone: "the order is gone", amended: "the shop changed it", person_merged: "two people turned out to be one", person_parted: "it belongs to another person", person_found: "its person was found",
  click_came: "a click came", click_added: "a click counts now", click_left_out: "a click counts no more", click_changed: "a click is of another channel, time or campaign", order_capped: "it is placed when it was received",
  reason_changed: "another reason for no touchpoint", settings_changed: "the rules changed", program_changed: "the program changed", model_refitted: "a model learnt something else",
};
let versions = null, diff = null, wrong = null, again = () => {};

export const title = () => (diff ? `Version ${diff.from} to ${diff.to}` : "Results");

export function enter(draw) {
  let stop = new AbortController();
  again = () => {
    stop.abort();
    stop = new AbortController();
    look(stop.signal).then(() => { wrong = null; }, (error) => { if (error.name !== "AbortError") wrong = error; }).then(draw);
  };
  again();
  return () => stop.abort();
}

async function look(signal) {
  const { from, to, clientId } = filters(KNOWN);
  versions = (await ask("/attribution/versions", { limit: 100 }, signal)).versions;
  const [after, before] = [to || versions[0]?.version, from || versions[1]?.version];
  diff = before && after ? (await ask("/attribution/diff", { from: before, to: after, clientId, limit: 200 }, signal)).diff : null;
}

const set = (changed) => { choose(changed, { push: true }); again(); };
const isIn = (version, end) => diff?.[end] === version;

const list = () => card("versions", "Every version", html`<div class="table-box" tabindex="0" role="region" aria-label="Versions"><table class="numbers" data-rows><thead><tr><th scope="col">Compare</th><th scope="col">Version</th><th scope="col">Made</th><th scope="col">How</th>${["Orders", "Credited", "Touchpoints", "Changed", "Took"].map((word) => html`<th scope="col" class="num">${word}</th>`)}</tr></thead>
  <tbody>${versions.map((each) => html`<tr data-row><td class="choice"><input type="radio" name="from" aria-label="from version ${each.version}" .checked=${isIn(each.version, "from")} @change=${() => set({ from: each.version })}><input type="radio" name="to" aria-label="to version ${each.version}" .checked=${isIn(each.version, "to")} @change=${() => set({ to: each.version })}></td>
    <th scope="row"><a href=${at("/attribution", { version: each.version })}>${each.version}</a></th><td>${time(ms(each.createdAt))}</td><td>${each.kind}${each.why ? html`<span class="under">${each.why}</span>` : nothing}</td><td class="num">${number(each.orders)}</td><td class="num">${number(each.credited)}</td><td class="num">${number(each.touchpoints)}</td><td class="num">${number(each.changed)}</td><td class="num">${each.seconds.toFixed(1)} s</td></tr>`)}</tbody></table></div>`, { count: versions.length });

function causes() {
  const all = Object.entries(diff.causes), top = Math.max(1, ...all.map(([, count]) => count));
  return card("causes", `From version ${diff.from} to ${diff.to}`, html`<div class="card-body stack"><p><b>${number(diff.differing)}</b> ${diff.differing === 1 ? "order differs" : "orders differ"}; ${number(diff.new)} new, ${number(diff.gone)} gone.</p>
    ${all.length ? html`<ol class="counts-list">${all.map(([cause, count]) => html`<li><span>${CAUSES[cause] ?? cause}</span>${gauge(count / top)}<span class="num">${number(count)}</span></li>`)}</ol>` : html`<p class="under">Nothing that both versions say of an order differs.</p>`}
    ${diff.models.added.length + diff.models.removed.length ? html`<p class="under">Models added: ${diff.models.added.map(modelName).join(", ") || "none"}; removed: ${diff.models.removed.map(modelName).join(", ") || "none"}.</p>` : nothing}
    ${diff.settings.map((each) => html`<p class="under"><code>${each.name}</code> was <code>${JSON.stringify(each.before)}</code> and is <code>${JSON.stringify(each.after)}</code>.</p>`)}</div>`);
}

const models = () => [...new Set(diff.orders.flatMap((each) => [each.before, each.after].flatMap((side) => Object.keys(side?.credits ?? {}))))];
const chosen = () => { const all = models(), { model } = filters(KNOWN); return all.includes(model) ? model : all.includes("linear") ? "linear" : all[0]; };
const parts = (side, model) => (side ? Object.entries(side.credits[model] ?? {}).map(([channel, credit]) => html`<span class="part"><bdi>${channel}</bdi> ${amount(credit)}</span>`) : nothing);

function orders() {
  const model = chosen();
  return card("orders", "Order by order", html`<div class="table-box" tabindex="0" role="region" aria-label="Orders that differ"><table class="numbers" data-rows><thead><tr><th scope="col">Order</th><th scope="col">Why</th><th scope="col" class="num">Amount</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
    <tbody>${diff.orders.map((each) => { const now = each.after ?? each.before; return html`<tr data-row><th scope="row">${each.after ? html`<a href=${at(address("/attribution/orders", each.clientId, each.orderId), { version: diff.to })}><bdi>${each.orderId}</bdi></a>` : html`<bdi>${each.orderId}</bdi>`}<span class="under"><bdi>${each.clientId}</bdi></span></th>
      <td class="why">${each.causes.map(({ cause, what }) => html`<p><b>${CAUSES[cause] ?? cause}</b> <span class="under"><bdi>${what}</bdi></span></p>`)}</td><td class="num">${money(now.amount, now.currency)}${each.before && each.after && each.before.refunded !== each.after.refunded ? html`<span class="under">refunded ${each.before.refunded} → ${each.after.refunded}</span>` : nothing}</td><td>${parts(each.before, model)}</td><td>${parts(each.after, model)}</td></tr>`; })}</tbody></table></div>`,
  { count: diff.orders.length, more: html`<label class="more filter-inline"><span class="visually-hidden">Model</span><select @change=${(event) => set({ model: event.target.value })}>${models().map((each) => html`<option value=${each} ?selected=${each === model}>${modelName(each)}</option>`)}</select></label>` });
}

export function view() {
  const head = html`<div class="page-head"><h1>Results</h1><span class="faint">what each run of attribution made, and why two differ</span></div>`;
  if (!versions) return wrong && !isUnmade(wrong) ? html`<div class="page">${head}${fault(wrong)}</div>` : waiting("Results");
  if (!versions.length) return html`<div class="page">${head}${empty("No result version yet", "Each run of attribution makes a version, and never changes an older one.", FIRST_STEPS())}</div>`;
  return html`<div class="page versions">${head}${ignoredFilters(filters(KNOWN).ignored)}${wrong ? fault(wrong) : nothing}
    ${diff ? html`${causes()}${diff.orders.length ? orders() : nothing}` : html`<p class="note">With a second version, this page says what differs and why.</p>`}${list()}</div>`;
}
