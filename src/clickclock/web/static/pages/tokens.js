// Who may do what: tokens are made here, shown once, and taken back.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { field, openDialog } from "../components/dialog.js";
import { remove } from "../components/actions.js";
import { offer } from "../components/offer.js";
import { card, empty, fault, ignoredFilters, time, waiting } from "../components/parts.js";
import { settingTabs } from "../components/setting-tabs.js";
import { say } from "../components/toast.js";
import { filters } from "../core/address.js";
import { ask, change } from "../core/api.js";
import { may } from "../core/permissions.js";
import { glyph } from "../core/states.js";
import { iso, ms, now } from "../core/time.js";

const PAGE = 100, DAY = 86_400_000, EVERY = "*";
const ROLES = { viewer: "looks at jobs and runs", operator: "runs, pauses and acknowledges, too", editor: "changes jobs and schedules, too", analyst: "reads reports, proofs and clicks", monitor: "reads the state and metrics", ingest: "sends orders", admin: "everything but sending orders" };
const ENDS = [["30", "30 days"], ["90", "90 days"], ["365", "a year"], ["", "never"]];
let tokens = null, sessions = [], cursor = null, wrong = null, redraw = () => {};

export const title = () => "Tokens";

export function enter(draw) {
  redraw = draw;
  tokens = null;
  load();
}

async function load(more = null) {
  try {
    const [found, open] = await Promise.all([ask("token", { limit: PAGE, cursor: more }), ask("sessions", { limit: PAGE })]);
    sessions = open.sessions;
    tokens = more ? [...tokens, ...found.tokens] : found.tokens;
    [cursor, wrong] = [found.nextCursor, null];
  } catch (error) { wrong = error; }
  redraw();
}

const names = (text) => { const given = text.split(",").map((each) => each.trim()).filter(Boolean); return given.length ? given : [EVERY]; };

/** The secret is in one answer, and so in one dialog. */
const show = (name, secret) => openDialog({
  title: `The token ${name}`, button: "I have kept it",
  body: () => html`<p>Copy it now. Nobody can show it again: the service keeps only its SHA-256.</p><pre class="command" tabindex="0"><code>${secret}</code></pre>`,
  act: async () => {},
});

const create = () => openDialog({
  title: "Create a token", button: "Create",
  body: () => html`${field("Name", html`<input name="name" required maxlength="128" autocomplete="off" spellcheck="false">`, "Of the person or the program that gets it.")}
    ${field("Role", html`<select name="role">${Object.entries(ROLES).map(([role, words]) => html`<option value=${role}>${role}: ${words}</option>`)}</select>`)}
    ${field("Applications", html`<input name="applications" placeholder="all" spellcheck="false">`, "Commas between them.")}${field("Clients", html`<input name="clients" placeholder="all" spellcheck="false">`, "Commas between them.")}
    ${field("Ends after", html`<select name="days">${ENDS.map(([days, word]) => html`<option value=${days}>${word}</option>`)}</select>`)}`,
  act: async (values) => {
    const days = values.get("days"), grants = [{ role: values.get("role"), applications: names(values.get("applications")), clients: names(values.get("clients")) }];
    const { secret } = await change("POST", "token", { name: values.get("name"), grants, expiresAt: days ? iso(now() + days * DAY) : null });
    await load();
    return () => show(values.get("name"), secret);
  },
});

const rotate = (token) => openDialog({
  title: `Rotate ${token.name}?`, button: "Rotate", tone: "danger",
  body: () => html`<p>It gets another secret, and keeps its name, grants and end. The old secret is refused at once.</p>`,
  act: async () => {
    const { secret } = await change("PUT", "token", { name: token.name });
    await load();
    return () => show(token.name, secret);
  },
});

const revoke = (token) => remove({
  title: "Revoke the token", button: "Revoke", name: token.name, words: `Whoever uses ${token.name} is refused from now on. It cannot be given back; a new one can be made.`,
  act: async () => { await change("DELETE", "token", undefined, { query: { name: token.name } }); await load(); say(`${token.name} is revoked.`); },
});

const signOut = (session) => openDialog({
  title: `Sign ${session.name} out?`, button: "Sign out", tone: "danger",
  body: () => html`<p>This browser is refused at once. Whoever still has the token, or the account at the identity provider, can sign in again.</p>`,
  act: async () => { await change("DELETE", "sessions", undefined, { query: { name: session.name, sessionId: session.sessionId } }); await load(); say(`A browser of ${session.name} is signed out.`); },
});

const scope = (word, given) => (given.includes(EVERY) ? `all ${word}` : given.length ? given.join(", ") : `no ${word}`);
const standing = (token) => (token.revokedAt ? html`<span class="badge cancelled">${glyph("cancelled")}revoked</span> ${time(ms(token.revokedAt))}` : token.expiresAt && ms(token.expiresAt) <= now() ? html`<span class="badge timedOut">${glyph("timedOut")}expired</span> ${time(ms(token.expiresAt))}`
  : html`<span class="badge succeeded">${glyph("succeeded")}valid</span>${token.expiresAt ? html` <span class="under">until ${time(ms(token.expiresAt))}</span>` : html` <span class="under">without an end</span>`}`);

const grants = (holder) => holder.grants.map((each) => html`<span class="part"><b>${each.role}</b> <span class="faint">${scope("applications", each.applications)}; ${scope("clients", each.clients)}</span></span>`);
const row = (token) => html`<tr data-row><td class="cell-name"><b><bdi>${token.name}</bdi></b></td><td class="cell-why">${grants(token)}</td>
  <td>${standing(token)}</td><td>${token.lastUsedAt ? time(ms(token.lastUsedAt)) : html`<span class="faint">never used</span>`}</td><td class="cell-why"><bdi>${token.createdBy}</bdi> <span class="under">${time(ms(token.createdAt))}</span></td>
  <td class="row-actions">${token.revokedAt || !may("token.write") ? nothing : html`<button class="button small" @click=${() => rotate(token)}>Rotate …</button><button class="button small danger" @click=${() => revoke(token)}>Revoke …</button>`}</td></tr>`;

const table = () => html`<div class="table-box" tabindex="0" role="region" aria-label="All tokens"><table class="stacked" data-rows><thead><tr><th scope="col">Name</th><th scope="col">May</th><th scope="col">Stands</th><th scope="col">Last used</th><th scope="col">Made by</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
  <tbody>${repeat(tokens, (each) => each.tokenId, row)}</tbody></table></div>${cursor ? html`<p class="note"><button class="button" @click=${() => load(cursor)}>More</button></p>` : nothing}`;

const signedIn = () => html`<div class="table-box" tabindex="0" role="region" aria-label="Who is signed in"><table class="stacked" data-rows><thead><tr><th scope="col">Name</th><th scope="col">May</th><th scope="col">By</th><th scope="col">Signed in</th><th scope="col">Last used</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
  <tbody>${repeat(sessions, (each) => each.sessionId, (each) => html`<tr data-row><td class="cell-name"><b><bdi>${each.name}</bdi></b></td><td class="cell-why">${grants(each)}</td><td>${each.token ? html`the token <bdi>${each.token}</bdi>` : each.kind}</td>
    <td>${time(ms(each.createdAt))}</td><td>${time(ms(each.lastUsedAt))}</td><td class="row-actions">${may("token.write") ? html`<button class="button small danger" @click=${() => signOut(each)}>Sign out …</button>` : nothing}</td></tr>`)}</tbody></table></div>`;

export function view() {
  if (!tokens && !wrong) return waiting("Tokens");
  return html`<div class="page"><div class="page-head"><h1>Tokens</h1>${settingTabs("/settings/tokens")}${tokens ? offer([{ word: "Create a token …", needs: "token.write", act: create, tone: "primary" }]) : nothing}</div>${ignoredFilters(filters([]).ignored)}${wrong ? fault(wrong) : nothing}
    ${tokens ? card("tokens", "Tokens", tokens.length ? table() : empty("There is no token yet", "A token lets a person or a program in. Make one here, or on the service's host:", "clickclock token create NAME --role viewer"), { count: tokens.length, note: "in the order in which they were made" }) : nothing}
    ${sessions.length ? card("sessions", "Signed in", signedIn(), { count: sessions.length, note: "browsers, in the order in which they signed in" }) : nothing}</div>`;
}
