// The words for what networks and partners are told, and for why they are not.
import { html } from "../vendor/lit-html/lit-html.js";
import { counted, number } from "./parts.js";

const KINDS = { conversion: ["conversion", "conversions"], restate: ["restatement", "restatements"], retract: ["retraction", "retractions"] };
const FATES = {
  told: ["already told", "The network knows it as it is."], held: ["held", "The network does not know the click yet. It is told later."],
  no_value: ["nothing to tell", "The model gives the click nothing, or the order was refunded before it was told."], no_click_id: ["no click id", "The click has no id that the network knows, or it is not in the lake any more."],
  bad_click_id: ["bad click id", "The click's id has not the network's form: it is made up, or a placeholder."], nobody: ["nobody", "Nothing that is left of the click tells the network whose it was."],
  bad_order_id: ["bad order id", "The order's id is too long, is no line of text, or has a mail address in it."], bad_currency: ["bad currency", "The currency was withdrawn, or is no money."],
  too_old: ["too old", "The network takes nothing about it any more."], not_adjustable: ["not adjustable", "It changed, and the network takes no adjustments."], retracted: ["retracted", "It was retracted and has a value again. The network takes no second conversion."],
};
/** Where a partner has other reasons than an ad network. */
export const OF_PARTNERS = {
  told: ["already told", "The partner was called about it, or is about to be."], held: ["held", "The order is younger than hold_hours. The partner is called later."],
  no_click_id: ["parameter missing", "The click has not each parameter that the template names, or it is not in the lake any more."], too_old: ["too old", "It is too late to call, by age_days."],
  not_adjustable: ["not told of changes", "It changed, and the partner's table has no changes = true."], retracted: ["retracted", "It was retracted and has a value again. The partner is not called twice."],
};

export const kindOf = (kind) => (KINDS[kind] ?? [kind])[0];
export const kinds = (of) => Object.entries(of).map(([kind, many]) => counted(many, ...(KINDS[kind] ?? [kind]))).join(", ");

/** Of how many credits nothing is told, with the reason. */
export function fates(of, words = {}) {
  const said = (fate) => words[fate] ?? FATES[fate] ?? [fate, ""], all = Object.entries(of);
  return all.length ? html`<ul class="fate-list">${all.map(([fate, many]) => html`<li><b class="num">${number(many)}</b><div>${said(fate)[0]}<span class="under">${said(fate)[1]}</span></div></li>`)}</ul>` : html`<p class="under">No credit is held back.</p>`;
}
