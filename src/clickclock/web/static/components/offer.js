// What can be done here: a button for each thing that the reader may do, and a sentence for what the reader may not.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { lacks, may } from "../core/permissions.js";

/** `[{ word, needs, act, tone?, disabled? }]`, all of them of one application; null for what belongs to all. */
export function offer(things, of = null) {
  const [held, others] = [things.filter((each) => may(each.needs, of)), things.filter((each) => !may(each.needs, of))];
  return html`<div class="actions">${held.map((each) => html`<button class="button ${each.tone ?? ""}" ?disabled=${!!each.disabled} @click=${each.act}>${each.word}</button>`)}
    ${others.length ? html`<p class="under not-offered">${others.map((each) => each.word.replace(/ …$/, "")).join(", ")}: ${lacks([...new Set(others.map((each) => each.needs))].join(" and "), of)}</p>` : nothing}</div>`;
}
