// The verdict of the checker: whether the collector takes a click, every fault, its channel and why, and what makes two one.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { chip } from "./credit.js";
import { glyph } from "../core/states.js";
import { ms, span, when } from "../core/time.js";

const READ = { landingPage: "a landing page: the tag adds what is underlined", click: "an address of the collector", query: "a query", logLine: "a line of a server's log" };
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Commands that do the same without a browser. */
export function commands(asked) {
  const options = [["clientId", asked.clientId], ["sellerId", asked.sellerId]].filter(([, value]) => value).map(([name, value]) => ` --data-urlencode ${quoted(`${name}=${value}`)}`).join("");
  return `curl -sG ${location.origin}/attribution/check${options} --data-urlencode ${quoted(`click=${asked.click}`)}`;
}

const headline = (told) => (told.accepted ? ["succeeded", "Accepted", `The collector answers ${told.answer}, once it is on disk.`]
  : told.answer === null ? ["skipped", "Not sent", "The tag sends nothing from this page."] : ["failed", "Refused", `The collector answers ${told.answer}, and keeps it as a rejection.`]);

const SILENT = { absent: "says nothing", dropped: "left out: no consent" };
const parameter = (told) => ({ name, value, verdict }) => html`<tr class=${verdict === "ok" ? "" : SILENT[verdict] ? "is-absent" : "is-wrong"}><th scope="row"><code><bdi class=${told.added.includes(name) ? "is-added" : ""}>${name}</bdi></code></th><td class="why"><bdi>${value ?? ""}</bdi></td>
  <td>${verdict === "ok" ? html`<span class="faint">ok</span>` : html`<b>${SILENT[verdict] || verdict}</b>`}</td></tr>`;

export function verdict(told, asked) {
  const [state, word, sentence] = headline(told), { channel, dedup } = told;
  return html`<div class="verdict ${state}" role="status"><p class="verdict-word">${glyph(state)} ${word}</p><p>${sentence}</p>
      <p class="under">Read as ${READ[told.read]}. ${told.account ? html`Judged by the profile <b>${told.account.profile}</b>${told.account.clientId === "*" ? "" : html` of <bdi>${told.account.clientId}</bdi>`}.` : "No account has this client."}${told.read === "logLine" ? ` It came ${when(ms(told.receivedAt))}.` : ""}${told.isBot ? " Its user agent is a bot's." : ""}</p></div>
    ${told.notes.length || told.faults.length ? html`<ul class="faults">${told.notes.map((note) => html`<li>${note}</li>`)}${told.faults.map((each) => html`<li><code>${each.field}</code> ${each.message}</li>`)}</ul>` : nothing}
    <dl class="facts"><div><dt>Channel</dt><dd>${chip(channel.channel)}<span class="under">${channel.why}</span></dd></div><div><dt>Counts for</dt><dd>${told.isView ? (channel.windowDays ? html`${Math.round(24 * channel.windowDays)} hours<span class="under">before an order that no click earned</span>` : html`nothing<span class="under">no window of views has its channel</span>`) : html`${channel.windowDays} days<span class="under">before an order</span>`}</dd></div>
      <div class="whole"><dt>The same ad</dt><dd>${dedup.clickId ? html`has the same <code>${dedup.clickId}</code>: such a click counts once, for ever` : html`has the same ${Object.keys(dedup.ad).map((name, i) => html`${i ? ", " : ""}<code>${name}</code>`)}: a person's next click on it within ${span(dedup.repeatMs)} is a repeat`}</dd></div>
      ${told.flags.length ? html`<div class="whole"><dt>Let pass, and flagged</dt><dd>${told.flags.join(", ")}</dd></div>` : nothing}</dl>
    <div class="table-box" tabindex="0" role="region" aria-label="Parameters"><table class="numbers parameters"><thead><tr><th scope="col">Parameter</th><th scope="col">Value</th><th scope="col">Verdict</th></tr></thead><tbody>${told.parameters.map(parameter(told))}</tbody></table></div>
    <details class="note-details"><summary>What would be kept</summary><pre class="command" tabindex="0"><code>${JSON.stringify(told.kept, null, 2)}</code></pre></details>
    <details class="note-details"><summary>The same with curl</summary><pre class="command" tabindex="0"><code>${commands(asked)}</code></pre></details>`;
}
