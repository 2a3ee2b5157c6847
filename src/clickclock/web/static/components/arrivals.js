// Clicks, views, rejections and orders as rows: what each says, and every reason why one was refused.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { glyph } from "../core/states.js";
import { ms, when } from "../core/time.js";

const LOOKS = { click: ["succeeded", "click"], view: ["succeeded", "view"], rejection: ["failed", "rejected"], order: ["starting", "order"], other: ["queued", "other"] };
const HINTS = ["gclid", "gbraid", "wbraid", "uclid", "fbclid", "fb_campaign_id", "utm_campaign", "utm_source", "source", "atag"];

const hint = (parameters = {}) => { const name = HINTS.find((each) => parameters[each]); return name ? html`<span class="faint">${name}</span> <bdi>${parameters[name]}</bdi>` : nothing; };
const says = (row) => (row.seen === "order" || row.order ? html`<bdi>${row.order?.order_id ?? ""}</bdi> ${row.order?.amount ?? ""} ${row.order?.currency ?? ""}` : hint(row.parameters));

const arrival = (row) => html`<li data-row><details><summary><time>${when(ms(row.receivedAt))}</time>${glyph(LOOKS[row.seen][0])}<b>${LOOKS[row.seen][1]}</b><bdi class="faint">${row.clientId ?? "no client"}</bdi><span class="arrival-says">${says(row)}</span></summary>
    <pre class="command" tabindex="0"><code>${JSON.stringify(row.order ?? row.parameters ?? {}, null, 2)}</code></pre><p class="under">${row.identifierName ? html`<code>${row.identifierName}</code> <bdi>${row.identifier}</bdi> · ` : nothing}${row.profile ? `profile ${row.profile} · ` : ""}<bdi>${row.agent || "no user agent"}</bdi></p></details>
  ${row.faults?.length ? html`<ul class="faults">${row.faults.map((each) => html`<li><code>${each.field}</code> ${each.message}</li>`)}</ul>` : nothing}${row.flags?.length ? html`<p class="under">let pass: ${row.flags.join(", ")}</p>` : nothing}</li>`;

/** `hold()` and `release()`: nothing moves under the pointer. */
export const arrivalRows = (rows, hold, release) => html`<ol class="arrivals" data-rows @pointerenter=${hold} @pointerleave=${release}>${repeat(rows, (row) => row.id, arrival)}</ol>`;
