// Credit: what clicks brought, by channel, campaign, ad, seller and day; models side by side; every number opens its orders.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { cohorts } from "../components/cohorts.js";
import { amount, at, field, FIRST_STEPS, gauge, isUnmade, modelName, money, NO_CHANNEL, select, toneOf } from "../components/credit.js";
import { whyNot } from "../components/why-not.js";
import { card, counted, empty, fault, figure, ignoredFilters, number, time, waiting } from "../components/parts.js";
import { choose, filters, withChosen } from "../core/address.js";
import { ask } from "../core/api.js";
import { iso, ms, now } from "../core/time.js";

const KNOWN = ["from", "to", "by", "model", "clientId", "sellerId", "currency", "kind", "channel", "campaign", "adSet", "version", "compare", "cohort", "month", "all"];
const LEVELS = ["channel", "campaign", "adSet", "ad"];
const WIRE = { channel: "channel", campaign: "campaign", adSet: "ad_set", ad: "ad", seller: "seller", client: "client", day: "day", customer: "customer", kind: "kind", reason: "reason", source: "source", medium: "medium", keyword: "keyword", page: "page", device: "device", country: "country" };
const WORDS = { channel: "Channel", campaign: "Campaign", adSet: "Ad set", ad: "Ad", seller: "Seller", client: "Client", day: "Day", customer: "Customer", kind: "Kind of order", reason: "Reason", source: "Source", medium: "Medium", keyword: "Keyword", page: "Landing page", device: "Device", country: "Country" };
/** Rows that only the clicks themselves say. */
const OF_A_CLICK = ["source", "medium", "keyword", "page", "device", "country"];
/** Rows whose orders a list can show. */
const LISTED = new Set([...LEVELS, "seller", "client", "day", "kind"]);
const COHORTS = "cohorts", COMPARED = { period: "previous", year: "last_year" }, SPAN_DAYS = 30, DAY = 86_400_000;
/** Rows that are drawn before they are asked for; sums and the days count all. */
const SHOWN = 50;
const FIGURES = { reason: ["orders,revenue", "orders,revenue"] };
const ALL_FIGURES = ["clicks,views,people,orders,conversions,revenue,credit,refunds,cost,roas,cpa", "orders,conversions,credit,refunds,cost"];
let found = null, wrong = null, stop = new AbortController();

export const title = () => "Credit";

export function enter(draw) {
  const load = () => {
    stop.abort();
    stop = new AbortController();
    look(filters(KNOWN), stop.signal, (part) => { found = part; wrong = null; draw(); }).catch((error) => { if (error.name !== "AbortError") wrong = error; draw(); });
  };
  again = () => { load(); draw(); };
  load();
  return () => stop.abort();
}
let again = () => {};
const set = (changed) => { choose(changed, { push: true }); again(); };

/** The level of a drill-down: what the address has chosen so far, and what the rows are then. */
const level = (given) => (given.by && given.by !== "channel" ? given.by : LEVELS.find((name) => !given[name]) ?? "ad");

/** What the page shows, as soon as a part of it is there: the rows first, then the days, then what they are compared with. */
async function look(given, signal, tell) {
  const { versions } = await ask("/attribution/versions", { limit: 50 }, signal);
  const version = given.version || versions[0]?.version, { clientId, sellerId, currency, kind, from, to } = given;
  const of = { version, clientId, sellerId, currency, kind, from, to, channel: given.channel || null }, row = level(given);
  if (row === COHORTS) return tell({ given, versions, version, row, cohorts: (await ask("/attribution/cohorts", { version, clientId }, signal)).cohorts });
  const by = LEVELS.includes(row) ? LEVELS.slice(given.channel ? 1 : 0, LEVELS.indexOf(row) + 1) : [row];
  const report = async (more) => (await ask("/attribution/report", { ...of, ...more }, signal)).report;
  const [wanted, compared] = FIGURES[row] ?? ALL_FIGURES, dimensions = [...by.map((name) => WIRE[name]), "model"].join();
  const asked = report({ by: dimensions, figures: wanted });
  const days = row === "reason" ? null : report({ by: "day,channel", model: given.model || "last", figures: "orders,credit" });
  const early = days?.catch(() => null);   // if the rows fail, the days do not matter; if not, they are awaited below
  const rows = await asked, part = { given, versions, version, row, by, rows, days: await Promise.race([early, null]), then: null, models: [...new Set(rows.rows.map((each) => each.model))] };
  tell(part);
  if (days && !part.days) {
    part.days = await days;
    tell(part);
  }
  const compare = from && to && COMPARED[given.compare], version_ = given.compare > 0 ? given.compare : null;
  if (!compare && !version_) return;
  const then = await report({ by: dimensions, figures: compared, ...(compare ? { compare } : { version: version_ }) });
  part.then = compare ? then.rows.map((each) => asBefore(each, compared.split(","))) : then.rows;
  part.rows = { ...rows, rows: [...rows.rows, ...goneRows(part)] };
  tell(part);
}

/** A row of a comparison, with the figures that it had before. */
const asBefore = (each, figures) => ({ ...each, ...Object.fromEntries(figures.map((name) => [name, each[`${name}Before`]])) });
/** Rows that only the earlier period, or the other version, has: they are shown with nothing for now. */
function goneRows({ rows, then, by }) {
  const key = (each) => [...by.map((name) => each[name]), each.currency, each.model].join("\x1f"), here = new Set(rows.rows.map(key));
  return then.filter((each) => !here.has(key(each))).map((each) => ({ ...Object.fromEntries([...by, "currency", "model"].map((name) => [name, each[name]])), credit: "0", revenue: "0", refunds: "0", orders: 0, conversions: 0, clicks: 0, people: 0 }));
}

/** A comparison needs two days: without them, those of the last month. */
const lately = () => ({ from: iso(now() - (SPAN_DAYS - 1) * DAY).slice(0, 10), to: iso(now()).slice(0, 10) });
/** What stands beside, in words. */
function comparedWith() {
  const { given: { compare, from, to } } = found;
  if (!found.then) return nothing;
  return compare === "period" ? `before: the ${counted((ms(to) - ms(from)) / DAY + 1, "day")} that end on ${iso(ms(from) - DAY).slice(0, 10)}` : compare === "year" ? "before: the same days a year ago" : `before: result version ${compare}`;
}

const chosenModel = () => (found.models.includes(found.given.model) ? found.given.model : found.models.includes("last") ? "last" : found.models[0]);
const isOfDrill = (each) => LEVELS.slice(1).every((name) => !found.given[name] || !(name in each) || each[name] === found.given[name]);
const rowsOf = (rows, model) => rows.filter((each) => each.model === model && isOfDrill(each));
const nameOf = (each) => each[found.row] ?? (found.row === "channel" ? NO_CHANNEL : `(no ${WORDS[found.row].toLowerCase()})`);
const keyOf = (each) => [...found.by.map((name) => each[name]), each.currency].join("\x1f");
const sum = (rows, name) => rows.reduce((total, each) => total + Number(each[name] ?? 0), 0);

/** The orders behind a row: its dimensions as filters. */
function ordersOf(each, more = {}) {
  const { given, version, by } = found, dims = Object.fromEntries(by.map((name) => [name, each[name] ?? ""]));
  const { day, seller, client, ...of } = dims;
  return at("/attribution/orders", { version, model: chosenModel(), clientId: client || given.clientId || null, sellerId: seller || given.sellerId || null, currency: each.currency,
    from: day || given.from || null, to: day || given.to || null, kind: given.kind || null, channel: given.channel || null, ...of, ...more });
}

/** The orders of the report's filters that have a touchpoint, have none, or are credited to nobody for a reason. */
const ordersOfAll = ({ currency }, more) => at("/attribution/orders", { version: found.version, clientId: found.given.clientId || null, sellerId: found.given.sellerId || null, currency, kind: found.given.kind || null, from: found.given.from || null, to: found.given.to || null, ...more });
function beforeOf() {
  const then = found.then && new Map(rowsOf(found.then, chosenModel()).map((each) => [keyOf(each), each]));
  return then && ((each) => then.get(keyOf(each)));
}

function bar() {
  const { given, models, versions } = found, compared = versions.filter((each) => each.version !== Number(found.version)), isCohorts = found.row === COHORTS;
  return html`<form class="filter-bar" aria-label="What is reported" @submit=${(event) => event.preventDefault()}>
    ${isCohorts ? nothing : html`${field("From", given.from, (from) => set({ from }), { type: "date" })}${field("To", given.to, (to) => set({ to }), { type: "date" })}`}
    ${select("Rows", LEVELS.includes(found.row) ? "channel" : found.row, [["channel", "Channel → ad"], ["seller", "Seller"], ["client", "Client"], ["day", "Day"], ["customer", "New or returning"], ["kind", "Kind of order"], ["reason", "Why not credited"], ...OF_A_CLICK.map((name) => [name, WORDS[name]]), [COHORTS, "Who came back"]], (by) => set({ by: by === "channel" ? "" : by, channel: "", campaign: "", adSet: "", cohort: "", month: "" }))}
    ${isCohorts || found.row === "reason" ? nothing : select("Model", chosenModel(), models.map((model) => [model, modelName(model)]), (model) => set({ model }))}
    ${field("Client", given.clientId, (clientId) => set({ clientId }), { size: 12, placeholder: "all" })}
    ${isCohorts ? nothing : field("Kind", given.kind, (kind) => set({ kind }), { size: 10, placeholder: "all" })}
    ${select("Version", String(found.version), versions.map((each) => [String(each.version), `${each.version}${each === versions[0] ? " (latest)" : ""}`]), (version) => set({ version: version === String(versions[0].version) ? "" : version }))}
    ${isCohorts ? nothing : html`${select("Compare with", given.compare, [["", "nothing"], ["period", "the period before"], ["year", "a year before"], ...compared.map((each) => [String(each.version), `version ${each.version}`])], (compare) => set({ compare, ...(compare in COMPARED && !(given.from && given.to) ? lately() : {}) }))}`}</form>`;
}

function crumbs() {
  const { given } = found, steps = LEVELS.filter((name) => given[name]);
  if (!steps.length) return nothing;
  return html`<nav class="crumbs" aria-label="Where you are"><a href=${withChosen({ channel: "", campaign: "", adSet: "" })}>All channels</a>${steps.map((name, i) => html`<span class="faint">›</span>${i === steps.length - 1
    ? html`<b><bdi>${given[name]}</bdi></b>` : html`<a href=${withChosen(Object.fromEntries(steps.slice(i + 1).map((each) => [each, ""])))}><bdi>${given[name]}</bdi></a>`}`)}</nav>`;
}

function figures(rows) {
  const currencies = [...new Set(rows.map((each) => each.currency).filter(Boolean))];
  return html`<div class="figures four">${currencies.slice(0, 2).map((currency) => {
    const mine = rows.filter((each) => each.currency === currency), then = found.then ? rowsOf(found.then, chosenModel()).filter((each) => each.currency === currency) : null;
    const credit = sum(mine, "credit"), cost = sum(mine, "cost"), refunds = sum(mine, "refunds"), net = credit - refunds;
    const fixed = (value) => amount(value.toFixed(mine[0].credit?.split(".")[1]?.length ?? 0));
    return html`${figure("Credited", html`${fixed(credit)} <small>${currency}</small>`, then ? change(credit, sum(then, "credit")) : `by ${modelName(chosenModel())}, to these rows`)}
      ${figure("Refunded", html`${fixed(refunds)} <small>${currency}</small>`, credit ? `${((refunds / credit) * 100).toFixed(1)} % of it` : "–")}
      ${figure("Cost", cost ? html`${fixed(cost)} <small>${currency}</small>` : "–", cost ? `each unit brought ${(net / cost).toFixed(2)}` : html`import it: <code>attribution import-costs</code>`)}
      ${figure("Credited orders", number(Math.round(sum(mine, "conversions") * 100) / 100), then ? change(sum(mine, "conversions"), sum(then, "conversions")) : counted(sum(mine, "clicks"), "click"))}`;
  })}</div>`;
}

/** The change as a part of what was; a glyph and a sign say the direction, not the colour alone. */
const moved = (after, before) => (!before ? (after ? "new" : "–") : after === before ? "same" : html`<span class=${after > before ? "up" : "down"}><span aria-hidden="true">${after > before ? "▲" : "▼"}</span> ${after > before ? "+" : "−"}${Math.abs((after / before - 1) * 100).toFixed(1)} %</span>`);
const change = (after, before) => (before ? html`${moved(after, before)} since ${amount(before.toFixed(2))}` : "nothing before");

/** Credit of each day, channels on top of each other; a day opens its orders. */
function chart() {
  if (!found.days) return card("by-day", "By day", html`<div class="day-chart" aria-busy="true"></div>`);
  const rows = found.days.rows.filter((each) => each.day && Number(each.credit)), currency = rows[0]?.currency;
  const mine = rows.filter((each) => each.currency === currency), days = [...new Set(mine.map((each) => each.day))].sort();
  if (days.length < 2) return nothing;
  const first = ms(days[0]), count = Math.min(366, (ms(days.at(-1)) - first) / DAY + 1), top = Math.max(...days.map((day) => sum(mine.filter((each) => each.day === day), "credit")));
  const step = 100 / count, channels = [...new Set(mine.map((each) => each.channel))];
  return card("by-day", "By day", html`<div class="day-chart"><svg role="group" aria-label="Credit by day, ${counted(days.length, "day")} from ${days[0]} to ${days.at(-1)}; the most is ${amount(top.toFixed(2))} ${currency}">
    ${[0.5, 1].map((part) => svg`<line class="rail" x1="0" x2="100%" y1=${150 - part * 140} y2=${150 - part * 140} />`)}
    ${days.map((day) => {
      let y = 150;
      const parts = mine.filter((each) => each.day === day), x = ((ms(day) - first) / DAY) * step;
      return svg`<a href=${at("/attribution/orders", { version: found.version, from: day, to: day, currency, kind: found.given.kind || null, clientId: found.given.clientId || null, channel: found.given.channel || null })} aria-label="${day}: ${amount(sum(parts, "credit").toFixed(2))} ${currency}">
        ${parts.map((each) => { const height = (Number(each.credit) / top) * 140; y -= height; return svg`<rect class="day-bar ${toneOf(each.channel)}" x="${x + step * 0.12}%" width="${step * 0.76}%" y=${y} height=${Math.max(0.5, height)}><title>${day}, ${each.channel}: ${amount(each.credit)} ${currency}, ${counted(each.orders, "order")}</title></rect>`; })}</a>`;
    })}</svg><div class="day-ends under"><span>${days[0]}</span><span>${amount(top.toFixed(2))} ${currency} at most</span><span>${days.at(-1)}</span></div></div>`,
  { more: html`<span class="key">${channels.map((channel) => html`<i class=${toneOf(channel)}></i>${channel ?? NO_CHANNEL} `)}</span>` });
}

/** The rows that are drawn, those with most credit. */
const shownOf = (rows) => (found.given.all || found.row === "day" ? rows : rows.slice(0, SHOWN));

function table(all) {
  const rows = shownOf(all), top = Math.max(...rows.map((each) => Number(each.credit ?? 0)), 1), hasCost = rows.some((each) => each.cost), hasViews = rows.some((each) => each.views), before = beforeOf();
  const next = LEVELS[LEVELS.indexOf(found.row) + 1];
  const name = (each) => (next && each[found.row] ? html`<a href=${withChosen({ [found.row]: each[found.row], by: "" })}><bdi>${nameOf(each)}</bdi></a>` : html`<bdi class=${each[found.row] ? "" : "faint"}>${nameOf(each)}</bdi>`);
  return card("rows", `By ${WORDS[found.row].toLowerCase()}`, html`<div class="table-box" tabindex="0" role="region" aria-label="The report"><table class="numbers" data-rows><thead><tr>
    <th scope="col">${WORDS[found.row]}</th><th scope="col" class="bar-column"><span class="visually-hidden">Share</span></th>${["Credit", ...(before ? ["Before", "Change"] : []), "Refunds", "Orders", "Credited orders", "Clicks", ...(hasViews ? ["Views"] : []), "People", ...(hasCost ? ["Cost", "ROAS", "CPA"] : [])].map((word) => html`<th scope="col" class="num">${word}</th>`)}</tr></thead>
    <tbody>${repeat(rows, keyOf, (each) => html`<tr data-row><th scope="row">${name(each)}</th><td>${gauge(Number(each.credit ?? 0) / top, toneOf(each.channel ?? found.given.channel ?? each[found.row]))}</td>
      <td class="num">${money(each.credit, each.currency)}</td>${before ? html`<td class="num">${money(before(each)?.credit, each.currency)}</td><td class="num">${moved(Number(each.credit ?? 0), Number(before(each)?.credit ?? 0))}</td>` : nothing}<td class="num ${Number(each.refunds) ? "" : "none"}">${amount(each.refunds)}</td>
      <td class="num">${each.orders && LISTED.has(found.row) ? html`<a class="opens" href=${ordersOf(each)} aria-label="${counted(each.orders, "order")} of ${nameOf(each)}">${number(each.orders)}</a>` : number(each.orders ?? 0)}</td><td class="num">${each.conversions == null ? "–" : number(Math.round(each.conversions * 100) / 100)}</td>
      <td class="num">${number(each.clicks)}</td>${hasViews ? html`<td class="num">${number(each.views)}</td>` : nothing}<td class="num">${number(each.people)}</td>${hasCost ? html`<td class="num">${amount(each.cost)}</td><td class="num">${each.roas ? Number(each.roas).toFixed(2) : "–"}</td><td class="num">${amount(each.cpa)}</td>` : nothing}</tr>`)}</tbody></table></div>`,
  { note: before ? comparedWith() : "an order that two channels touched is counted by both", more: rows.length < all.length ? html`<a class="more" href=${withChosen({ all: "1" })}>All ${number(all.length)} rows</a>` : nothing });
}

/** Each model's credit of each row, beside each other: the darker, the more of its row. */
function models(rows) {
  const totals = new Map([...Map.groupBy(rows, (each) => each.currency)].map(([currency, mine]) => [currency, sum(mine, "credit")])), cells = new Map(found.rows.rows.filter(isOfDrill).map((each) => [`${keyOf(each)}\x1f${each.model}`, each]));
  return card("models", "Models side by side", html`<div class="table-box" tabindex="0" role="region" aria-label="Credit by model"><table class="numbers models"><thead><tr><th scope="col">${WORDS[found.row]}</th>
    ${found.models.map((model) => html`<th scope="col" class="num" aria-sort=${nothing}><a href=${withChosen({ model })} class=${model === chosenModel() ? "is-chosen" : ""}>${modelName(model)}</a></th>`)}<th scope="col" class="num">Depends on the model</th></tr></thead>
    <tbody>${shownOf(rows).filter((each) => each.currency).map((each) => {
      const all = found.models.map((model) => cells.get(`${keyOf(each)}\x1f${model}`)), top = Math.max(...all.map((cell) => Number(cell?.credit ?? 0)), 0.01), low = Math.min(...all.map((cell) => Number(cell?.credit ?? 0)));
      return html`<tr><th scope="row"><bdi class=${each[found.row] ? "" : "faint"}>${nameOf(each)}</bdi></th>${all.map((cell) => html`<td class="num heat" .style=${`--heat:${top > low ? Math.round(((Number(cell?.credit ?? 0) - low) / (top - low)) * 100) : 0}%`}>${amount(cell?.credit)}</td>`)}<td class="num">${disagreement(each, all, totals.get(each.currency))}</td></tr>`;
    })}</tbody></table></div>`, { note: "the same orders, divided by other rules; a row's darkest cell is the model that gives it most" });
}

/** How much of a row's credit depends on the model, and whether that decides if its ads pay. */
function disagreement({ credit }, all, total) {
  const given = all.map((cell) => Number(cell?.credit ?? 0)), spread = Math.max(...given) - Math.min(...given);
  const returns = all.map((cell) => cell?.roas).filter(Boolean).map(Number);
  const isTorn = returns.length > 0 && Math.min(...returns) < 1 && Math.max(...returns) >= 1, digits = credit?.split(".")[1]?.length ?? 0;
  if (!spread || !total) return html`<span class="faint">–</span>`;
  return html`${amount(spread.toFixed(digits))} <small class="faint">${((100 * spread) / total).toFixed(1)} % of all</small>${isTorn ? html`<br><small><b>pays by some models only</b></small>` : nothing}`;
}

export function view() {
  if (isUnmade(wrong)) return html`<div class="page"><h1>Credit</h1>${empty("No order is credited yet", "Once clicks and orders are in the lake, attribution credits each order, and this page shows what every channel earned.", FIRST_STEPS())}</div>`;
  if (wrong && !found) return html`<div class="page"><h1>Credit</h1>${fault(wrong)}</div>`;
  if (!found) return waiting("Credit");
  if (!found.versions.length) return html`<div class="page"><h1>Credit</h1>${empty("No order is credited yet", "Attribution has made no result version.", FIRST_STEPS())}</div>`;
  if (found.row === COHORTS) return html`<div class="page credit"><div class="page-head"><h1>Credit</h1><span class="faint">result version ${found.version}</span></div>
    ${wrong ? fault(wrong) : nothing}${ignoredFilters(filters(KNOWN).ignored)}${bar()}${cohorts(found.cohorts, found.given)}</div>`;
  const rows = rowsOf(found.rows.rows, chosenModel()).sort((a, b) => (found.row === "day" ? String(a.day).localeCompare(String(b.day)) : Number(b.credit ?? 0) - Number(a.credit ?? 0)));
  return html`<div class="page credit"><div class="page-head"><h1>Credit</h1><span class="faint">result version ${found.rows.version}, made ${time(ms(found.rows.createdAt))}</span></div>
    ${wrong ? fault(wrong) : nothing}${ignoredFilters(filters(KNOWN).ignored)}${bar()}${crumbs()}
    ${found.rows.notes.map((note) => html`<p class="banner">${note}</p>`)}
    ${!rows.length ? empty("Nothing here", "No click, order or cost fits these filters.") : found.row === "reason" ? whyNot(rows, ordersOfAll, beforeOf()) : html`${figures(rows)}${chart()}${table(rows)}${models(rows)}`}</div>`;
}
