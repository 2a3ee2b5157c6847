// The versions of a job: who made each, what it changed, and how any two of them differ.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { changes } from "./changes.js";
import { diff } from "./diff.js";
import { time } from "./parts.js";
import { select } from "./credit.js";
import { ms } from "../core/time.js";

const text = ({ definition }) => JSON.stringify(definition, null, 2);
const isMade = (each) => !each.changes || "jobName" in each.changes;

const row = (each) => html`<li><p><b>Version ${each.version}</b> <span class="faint">${time(ms(each.at))}, ${each.principal ? html`by <bdi>${each.principal}</bdi>` : "from the examples or files of the service, or the trail does not say"}</span></p>
  ${isMade(each) ? html`<p class="under">It was made.</p>` : changes(each.changes)}</li>`;

/** `chosen` are the numbers of the two that are compared, as the address says; `choose(changed)` changes it. */
export function history({ versions, hasMore }, chosen, choose) {
  const number = (text, otherwise) => (versions.some((each) => String(each.version) === text) ? text : String(otherwise));
  const newest = versions[0].version, before = number(chosen.from, Math.max(versions.at(-1).version, newest - 1)), after = number(chosen.to, newest), options = versions.map((each) => [String(each.version), `version ${each.version}`]);
  const [one, other] = [before, after].map((each) => versions.find(({ version }) => String(version) === each));
  return html`<div class="card-body stack"><ol class="versions">${repeat(versions.slice(0, 5), (each) => each.version, row)}</ol>${versions.length > 5 ? html`<details class="note-details"><summary>${versions.length - 5} older ones</summary><ol class="versions">${repeat(versions.slice(5), (each) => each.version, row)}</ol></details>` : nothing}
    ${hasMore ? html`<p class="under">Older versions are not shown, or the audit trail does not keep them any more.</p>` : nothing}
    ${versions.length > 1 ? html`<div class="filter-bar">${select("Compare", before, options, (value) => choose({ from: value }))}${select("with", after, options, (value) => choose({ to: value }))}</div>${before === after ? html`<p class="under">This is one version.</p>` : diff(text(one), text(other))}` : nothing}</div>`;
}
