// What ad networks were told, file by file, and what is held back, with the reason.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { money, FIRST_STEPS } from "../components/credit.js";
import { filterBar } from "../components/filter-bar.js";
import { card, counted, empty, fault, ignoredFilters, number, time, waiting } from "../components/parts.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { ms } from "../core/time.js";

const NAMES = ["network", "clientId"], LIMIT = 200;
const NETWORKS = { google: "Google Ads", meta: "Meta" };
const FIELDS = [{ name: "network", label: "Network", options: [["", "all"], ...Object.entries(NETWORKS)] }, { name: "clientId", label: "Client", placeholder: "all" }];
const KINDS = { conversion: ["conversion", "conversions"], restate: ["restatement", "restatements"], retract: ["retraction", "retractions"] };
const FATES = {
  told: ["already told", "The network knows it as it is."], held: ["held", "The network does not know the click yet. It is told later."],
  no_value: ["nothing to tell", "The model gives the click nothing, or the order was refunded before it was told."], no_click_id: ["no click id", "The click has no id that the network knows, or it is not in the lake any more."],
  bad_click_id: ["bad click id", "The click's id has not the network's form: it is made up, or a placeholder."], nobody: ["nobody", "Nothing that is left of the click tells the network whose it was."],
  bad_order_id: ["bad order id", "The order's id is too long, is no line of text, or has a mail address in it."], bad_currency: ["bad currency", "The currency was withdrawn, or is no money."],
  too_old: ["too old", "The network takes nothing about it any more."], not_adjustable: ["not adjustable", "It changed, and the network takes no adjustments."], retracted: ["retracted", "It was retracted and has a value again. The network takes no second conversion."],
};
let chosen = {}, told = null, wrong = null, redraw = () => {}, asked = 0;

export const title = () => "Uploads";

export function enter(draw) {
  redraw = draw;
  told = null;
  load();
}

async function load() {
  const mine = ++asked;
  chosen = filters(NAMES);
  const { ignored, ...query } = chosen;
  try {
    const found = await ask("/attribution/uploads", { ...query, limit: LIMIT });
    if (mine === asked) [told, wrong] = [found, null];
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

const kinds = (of) => Object.entries(of).map(([kind, many]) => counted(many, ...(KINDS[kind] ?? [kind]))).join(", ");

function network({ network: name, kinds: next, fates }) {
  const all = Object.entries(fates);
  return card(`next-${name}`, NETWORKS[name] ?? name, html`<div class="card-body stack"><p>${Object.keys(next).length ? html`The next export tells <b>${kinds(next)}</b>.` : "The next export tells nothing new."}</p>
    ${all.length ? html`<ul class="fate-list">${all.map(([fate, many]) => html`<li><b class="num">${number(many)}</b><div>${(FATES[fate] ?? [fate])[0]}<span class="under">${(FATES[fate] ?? [])[1] ?? ""}</span></div></li>`)}</ul>` : html`<p class="under">No credit is held back.</p>`}</div>`, { note: "what is not told yet, and why" });
}

const row = (each) => html`<tr data-row><td class="cell-name"><b>${NETWORKS[each.network] ?? each.network}</b> <bdi class="faint">${each.clientId}</bdi></td><td>${time(ms(each.exportedAt))}</td><td>${kinds(each.kinds)}</td>
  <td class="num">${Object.entries(each.values).map(([currency, value]) => html`<span class="part">${money(value, currency)}</span>`)}</td><td class="cell-why"><code>${each.file}</code></td><td class="num">${each.bytes == null ? html`<span class="faint" title="It is not in the folder of exports.">gone</span>` : `${number(Math.ceil(each.bytes / 1024))} KiB`}</td></tr>`;

const files = () => card("files", "Files", told.files.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="All files"><table class="stacked" data-rows>
    <thead><tr><th scope="col">For</th><th scope="col">Written</th><th scope="col">What it tells</th><th scope="col" class="num">Value</th><th scope="col">File</th><th scope="col" class="num">Size</th></tr></thead><tbody>${repeat(told.files, ({ file }) => file, row)}</tbody></table></div>${told.hasMore ? html`<p class="note">There are older ones; choose a network or a client.</p>` : nothing}`
  : NAMES.some((name) => chosen[name]) ? empty("No file fits", "Take a filter away.") : empty("Nothing was exported yet", "The job attribution/exports writes files for ad networks once a day. Write those of now:", "clickclock attribution export"), { note: "of the last 180 days", count: told.files.length });

export function view() {
  if (!told && !wrong) return waiting("Uploads");
  return html`<div class="page"><div class="page-head"><h1>Uploads</h1>${told?.next.version ? html`<span class="faint">by the model “${told.next.model}”, result version ${told.next.version}</span>` : nothing}</div>${ignoredFilters(chosen.ignored ?? [])}${filterBar(FIELDS, chosen, () => load())}${wrong ? fault(wrong) : nothing}
    ${told ? html`${told.next.version ? html`<div class="pair">${told.next.networks.map(network)}</div>` : html`<section class="card">${empty("Nothing is credited yet", "Networks are told what orders were credited to their clicks.", FIRST_STEPS())}</section>`}${files()}` : nothing}</div>`;
}
