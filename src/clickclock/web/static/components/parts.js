// Small parts that every page is made of. Each is a pure function: what it is given, it draws.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { to } from "../core/address.js";
import { full, relative, when } from "../core/time.js";

/** `shop/nightly-export`, the application in a quieter voice. Names may run from right to left: each is isolated. */
export const jobName = (of) => html`<span class="job-name"><bdi class="faint">${of.application}</bdi><span class="faint">/</span><bdi>${of.jobName}</bdi></span>`;
export const jobOf = (of) => `${of.application}/${of.jobName}`;
export const jobLink = (of) => html`<a class="job-link" href=${to("/jobs", of.application, of.jobName)}>${jobName(of)}</a>`;

/** An absolute time; on hover the whole time and how far away it is. */
export const time = (at) => (at == null ? html`<span class="faint">–</span>` : html`<time datetime=${new Date(at).toISOString()} title="${full(at)} · ${relative(at)}">${when(at)}</time>`);

export const card = (id, title, body, { note = nothing, more = nothing, count = null } = {}) => html`<section class="card" aria-labelledby=${id}>
  <div class="card-head"><h2 id=${id}>${title}</h2>${count == null ? nothing : html`<span class="count">${count}</span>`}${note === nothing ? nothing : html`<span class="faint">${note}</span>`}${more}</div>${body}</section>`;

export const figure = (title, big, under, more = nothing) => html`<div class="figure"><h2>${title}</h2><p class="big">${big}</p><p class="under">${under}</p>${more}</div>`;

/** What went wrong, in the service's own words, with the id under which its log says more. */
export const fault = (error) => html`<div class="fault" role="alert"><p><b>${error.message}</b></p>
  ${error.faults?.length ? html`<ul>${error.faults.map((each) => html`<li>${each.field ? html`<code>${each.field}</code> ` : nothing}${each.message}</li>`)}</ul>` : nothing}
  ${error.requestId ? html`<p class="faint">Request <code>${error.requestId}</code></p>` : nothing}</div>`;

/** A page that has nothing to show yet: what would be here, and the command that fills it. */
export const empty = (title, words, command = "") => html`<div class="empty"><h2>${title}</h2><p>${words}</p>${command ? html`<pre class="command" tabindex="0"><code>${command}</code></pre>` : nothing}</div>`;

/** Filters of an address that a page does not know are named, and not obeyed in silence. */
export const ignoredFilters = (names) => (names.length ? html`<p class="banner">This page does not know ${names.map((name, at) => html`${at ? ", " : ""}<code>${name}</code>`)}, and ignores ${names.length > 1 ? "them" : "it"}.</p>` : nothing);

/** A sentence of the service, with what stands between backquotes as code. */
export const prose = (text) => (text ?? "").split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

export const number = (value) => (value == null ? "–" : value.toLocaleString("en"));
/** `counted(2, "job")`: 2 jobs. */
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const percent = (share) => (share == null ? "–" : `${(share * 100).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1)} %`);
/** How a page stands while its first answer is on its way: as large as it will be, so that nothing jumps. */
export const waiting = (title) => html`<div class="page skeleton" aria-busy="true"><h1>${title}</h1><div class="card tall"></div></div>`;
