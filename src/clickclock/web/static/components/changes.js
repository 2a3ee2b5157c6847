// What a change changed: each field with its value before and after.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { diff } from "./diff.js";

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const isShort = (value) => value === undefined || text(value).length < 60;

const field = ([name, sides]) => html`<li><code>${name}</code> ${isShort(sides.before) && isShort(sides.after)
  ? html`${"before" in sides ? html`<del>${text(sides.before)}</del>` : html`<span class="faint">not set</span>`} <span aria-hidden="true">→</span><span class="visually-hidden">became</span> ${"after" in sides ? html`<ins>${text(sides.after)}</ins>` : html`<span class="faint">not set</span>`}`
  : diff("before" in sides ? text(sides.before) : "", "after" in sides ? text(sides.after) : "")}</li>`;

export const changes = (of) => (of && Object.keys(of).length ? html`<ul class="changes">${Object.entries(of).map(field)}</ul>` : nothing);

/** In a few words: the fields. */
export const changedFields = (of) => Object.keys(of ?? {}).join(", ");
