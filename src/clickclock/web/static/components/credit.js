// What the pages of attribution share: channels by their colour, amounts, paths, models by name, and where a number leads.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { clickUrl } from "../core/collector.js";

const MODELS = {
  first: "First", last: "Last", last_non_direct: "Last, not direct", linear: "Linear", position: "By position", time_decay: "Time decay",
  markov: "Markov", shapley: "Shapley", shapley_rate: "Shapley, by rate",
};
const TONES = { google: 0, meta: 1, newsletter: 2, onsite: 3, organic: 4, microsoft: 5, direct: 5, tiktok: 3 };
export const NO_CHANNEL = "(no click)";

export const modelName = (model) => MODELS[model] ?? model;
/** The same channel has the same colour on every page; its name always stands beside it. */
export const toneOf = (channel) => `c${TONES[channel] ?? [...(channel ?? "")].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 6}`;

/** `1234.50` as `1,234.50`. */
export function amount(text) {
  if (text == null) return "–";
  const [whole, part] = text.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
}
export const money = (text, currency) => (text == null ? html`<span class="faint">–</span>` : html`<span class="money">${amount(text)} <span class="faint">${currency}</span></span>`);

/** An address of a page with a query; what has no value is left out, and `""` is kept: it means "none". */
export function at(path, query) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value != null));
  return given.size ? `${path}?${given}` : path;
}

export const chip = (channel) => html`<span class="chip ${toneOf(channel)}"><bdi>${channel}</bdi></span>`;
/** Channels in their order. A channel several times in a row is one chip with a count. */
export function path(channels, all = channels.length) {
  const steps = [];
  for (const channel of channels) steps.at(-1)?.channel === channel ? (steps.at(-1).times += 1) : steps.push({ channel, times: 1 });
  return html`<span class="path">${steps.map(({ channel, times }, i) => html`${i ? html`<span class="faint" aria-hidden="true">›</span><span class="visually-hidden">, then </span>` : nothing}<span class="chip ${toneOf(channel)}"><bdi>${channel}</bdi>${times > 1 ? html`<b> ×${times}</b>` : nothing}</span>`)}
    ${all > channels.length ? html`<span class="faint">and ${all - channels.length} more</span>` : nothing}${channels.length ? nothing : html`<span class="faint">${NO_CHANNEL}</span>`}</span>`;
}

/**
 * A bar of parts, each a share of 1: what a model gives to each, left to right. `over` is the part that is pointed at.
 * @param {any[]} parts
 * @param {{ over?: string?, point?: (id: string?) => void, label?: string }} [more]
 */
export function splitBar(parts, { over = null, point = () => {}, label } = {}) {
  let from = 0;
  const placed = parts.filter((part) => part.share > 0).map((part) => { const here = { ...part, from }; from += part.share * 100; return here; });
  return html`<svg class="split" role="img" aria-label=${label ?? parts.map((part) => `${part.name}: ${part.credit}`).join(", ")}>${placed.map((part) => svg`<svg
    class="${toneOf(part.channel)} ${over ? (over === part.id ? "over" : "dim") : ""}" x="${part.from}%" width="${part.share * 100}%" height="22" @mouseenter=${() => point(part.id)} @mouseleave=${() => point(null)}>
    <rect class="share" x="1" width="100%" height="22" rx="4" />${part.word && part.share > 0.07 ? svg`<text class="share-word" x="9" y="15.5">${part.word}</text>` : ""}<title>${part.name}: ${part.credit}</title></svg>`)}</svg>`;
}

/** A single bar for a number among others: how much of the largest one it is. */
export const gauge = (part, tone = "c0") => html`<svg class="gauge" aria-hidden="true"><rect class="gauge-rail" width="100%" height="8" rx="4" /><rect class=${tone} width="${Math.max(part > 0 ? 1 : 0, Math.min(1, part) * 100)}%" height="8" rx="4" /></svg>`;

/** A choice in the bar of filters; choosing changes the address at once. */
export const select = (label, value, options, chosen) => html`<label class="filter"><span>${label}</span><select @change=${(event) => chosen(event.target.value)}>${options.map(([key, word]) => html`<option value=${key} ?selected=${key === value}>${word}</option>`)}</select></label>`;
export const field = (label, value, chosen, more = {}) => html`<label class="filter"><span>${label}</span><input type=${more.type ?? "text"} .value=${value} placeholder=${more.placeholder ?? nothing} size=${more.size ?? nothing} @change=${(event) => chosen(event.target.value.trim())}></label>`;

/** Nothing was credited yet: what fills the pages, with this installation's addresses. */
export const FIRST_STEPS = () => `${clickUrl ? `clickclock --url ${location.origin} demo --click-url ${clickUrl}   # a small shop of two weeks, sent and credited\n` : ""}clickclock attribution run   # ${clickUrl ? "or " : ""}credit what came in`;
/** Whether there is no result version at all; one that is named and not there is a fault. */
export const isUnmade = (error) => error?.code === "noVersion" && !new URLSearchParams(location.search).has("version");
