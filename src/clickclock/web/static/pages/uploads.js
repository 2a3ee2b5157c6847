// What ad networks were told, file by file, and what is held back, with the reason.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { money, FIRST_STEPS } from "../components/credit.js";
import { filterBar } from "../components/filter-bar.js";
import { card, empty, fault, ignoredFilters, number, time, waiting } from "../components/parts.js";
import { fates, kinds } from "../components/uploads.js";
import { listing } from "../core/listing.js";
import { ms } from "../core/time.js";

const NAMES = ["network", "clientId"];
const NETWORKS = { google: "Google Ads", meta: "Meta" };
const FIELDS = [{ name: "network", label: "Network", options: [["", "all"], ...Object.entries(NETWORKS)] }, { name: "clientId", label: "Client", placeholder: "all" }];
const list = listing("/attribution/uploads", NAMES, 200);

export const title = () => "Uploads";

export const enter = list.enter;

/** Behind the network's name, where its orders are no purchases. */
const ofKind = ({ network: name, orderKind }) => `${NETWORKS[name] ?? name}${orderKind === "purchase" ? "" : `, ${orderKind}`}`;

function network(each) {
  return card(`next-${each.network}-${each.orderKind}`, ofKind(each), html`<div class="card-body stack"><p>${Object.keys(each.kinds).length ? html`The next export tells <b>${kinds(each.kinds)}</b>.` : "The next export tells nothing new."}</p>
    ${fates(each.fates)}</div>`, { note: "what is not told yet, and why" });
}

const row = (each) => html`<tr data-row><td class="cell-name"><b>${ofKind(each)}</b> <bdi class="faint">${each.clientId}</bdi></td><td>${time(ms(each.exportedAt))}</td><td>${kinds(each.kinds)}</td>
  <td class="num">${Object.entries(each.values).map(([currency, value]) => html`<span class="part">${money(value, currency)}</span>`)}</td><td class="cell-why"><code>${each.file}</code></td><td class="num">${each.bytes == null ? html`<span class="faint" title="It is not in the folder of exports.">gone</span>` : `${number(Math.ceil(each.bytes / 1024))} KiB`}</td></tr>`;

const files = () => card("files", "Files", list.told.files.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="All files"><table class="stacked" data-rows>
    <thead><tr><th scope="col">For</th><th scope="col">Written</th><th scope="col">What it tells</th><th scope="col" class="num">Value</th><th scope="col">File</th><th scope="col" class="num">Size</th></tr></thead><tbody>${repeat(list.told.files, ({ file }) => file, row)}</tbody></table></div>${list.told.hasMore ? html`<p class="note">There are older ones; choose a network or a client.</p>` : nothing}`
  : NAMES.some((name) => list.chosen[name]) ? empty("No file fits", "Take a filter away.") : empty("Nothing was exported yet", "The job attribution/exports writes files for ad networks once a day. Write those of now:", "clickclock attribution export"), { note: "of the last 180 days", count: list.told.files.length });

export function view() {
  if (!list.told && !list.wrong) return waiting("Uploads");
  return html`<div class="page"><div class="page-head"><h1>Uploads</h1>${list.told?.next.version ? html`<span class="faint">by the model “${list.told.next.model}”, result version ${list.told.next.version}</span>` : nothing}</div>${ignoredFilters(list.chosen.ignored ?? [])}${filterBar(FIELDS, list.chosen, list.load)}${list.wrong ? fault(list.wrong) : nothing}
    ${list.told ? html`${list.told.next.version ? html`<div class="pair">${list.told.next.networks.map(network)}</div>` : html`<section class="card">${empty("Nothing is credited yet", "Networks are told what orders were credited to their clicks.", FIRST_STEPS())}</section>`}${files()}` : nothing}</div>`;
}
