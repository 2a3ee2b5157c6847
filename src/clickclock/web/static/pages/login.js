// Lets a command line in: it shows a code, and whoever is signed in here says what it may do.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { fault } from "../components/parts.js";
import { ask, change } from "../core/api.js";
import { ms, when } from "../core/time.js";

const ROLES = ["viewer", "operator", "editor", "analyst", "monitor", "admin"];
let code = "", waits = null, refused = null, done = false, redraw = () => {};

export const title = () => "Let a command line in";
export function enter(draw) {
  redraw = draw;
  [code, waits, refused, done] = [new URLSearchParams(location.search).get("code") ?? "", null, null, false];
  if (code) look();
}

async function attempt(act) {
  refused = null;
  try { await act(); } catch (error) { refused = error; }
  redraw();
}

const look = () => attempt(async () => { waits = (await ask("loginApproval", { code })).login; });

function letIn(event) {
  event.preventDefault();
  const role = event.target.elements.role.value;
  attempt(async () => { await change("PUT", "loginApproval", { code, ...(role ? { grants: [{ role }] } : {}) }); done = true; });
}

const question = () => html`<form @submit=${(event) => { event.preventDefault(); code = event.target.elements.code.value; look(); }}>
  <label class="field"><span>The code that it shows</span><input name="code" required autofocus autocomplete="off" placeholder="BCDF-GHJK" .value=${code}></label>
  <button class="button primary">Look</button></form>`;

const decision = () => html`<p>A command line waits under the code <strong>${waits.code}</strong>, until ${when(ms(waits.expiresAt))}. It says that it is
    <strong>${waits.said || "nobody"}</strong>; nobody has checked that.</p>
  <p>Let it in only if you have just begun this yourself, and it shows the same code. It acts as you, for 30 days.</p>
  <form @submit=${letIn}><label class="field"><span>What it may do</span><select name="role">
      <option value="">All that you may</option>${ROLES.map((role) => html`<option value=${role}>${role}, everywhere</option>`)}</select></label>
    <button class="button primary">Let it in</button></form>`;

export const view = () => html`<div class="page"><section class="card sign-in" aria-labelledby="login">
  <div class="card-head"><h1 id="login">Let a command line in</h1></div>
  <div class="card-body">${done ? html`<p role="status">It is in. You can close this page.</p>` : waits ? decision() : question()}
    ${refused ? fault(refused) : nothing}</div></section></div>`;
