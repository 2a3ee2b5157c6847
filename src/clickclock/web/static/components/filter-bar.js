// Filters of a list, which the address keeps. A change is a step of its own, so that the back button takes it back.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { choose } from "../core/address.js";

/** What somebody types and has not chosen yet: a page that draws itself meanwhile leaves it alone. @type {?{ field: HTMLInputElement, name: string, was: string }} */
let typed = null;
const shown = (name, value) => (typed?.name === name && typed.was === value && typed.field === document.activeElement ? typed.field.value : value);

/** `fields`: `{ name, label, options?: [[value, word]], placeholder? }`. `changed()` reads the address again. */
export function filterBar(fields, values, changed) {
  const set = (name) => (event) => { typed = null; choose({ [name]: event.target.value.trim() }, { push: true }); changed(); };
  const isAny = fields.some(({ name }) => values[name]);
  const clear = () => { choose(Object.fromEntries(fields.map(({ name }) => [name, null])), { push: true }); changed(); };
  return html`<form class="filter-bar" role="search" @submit=${(event) => event.preventDefault()}>
    ${fields.map(({ name, label, options, placeholder = "" }, at) => html`<label class="filter ${values[name] ? "on" : ""}"><span>${label}</span>
      ${options ? html`<select ?data-find=${at === 0} @change=${set(name)}>${known(options, values[name]).map(([value, word]) => html`<option value=${value} ?selected=${value === values[name]}>${word}</option>`)}</select>`
        : html`<input type="search" ?data-find=${at === 0} .value=${live(shown(name, values[name]))} placeholder=${placeholder} @input=${({ target }) => { typed = { field: target, name, was: values[name] }; }} @change=${set(name)} spellcheck="false" autocomplete="off">`}</label>`)}
    ${isAny ? html`<button type="button" class="button" @click=${clear}>Clear</button>` : nothing}</form>`;
}

const known = (options, value) => (options.some(([each]) => each === value) ? options : [...options, [value, value]]);

/** `-24h`, `-7d` or a time as the interface takes it → a time; what is neither goes on as it is, and is refused there. */
export function timeOf(text, now) {
  const relative = /^-(\d+)(m|h|d)$/.exec(text ?? "");
  return relative ? new Date(now - Number(relative[1]) * { m: 60_000, h: 3_600_000, d: 86_400_000 }[relative[2]]).toISOString() : text;
}
export const SPANS = [["", "any time"], ["-1h", "last hour"], ["-24h", "last 24 hours"], ["-7d", "last 7 days"], ["-30d", "last 30 days"]];
