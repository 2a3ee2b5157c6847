// Who may look: takes a token where the service wants one, or a link of `clickclock open`. Either becomes a session, whose
// cookie no script can read. A link's secret is behind the #, which no browser sends, and leaves the address at once.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { fault } from "../components/parts.js";
import { signIn, signInProvider } from "../core/api.js";
import { keep } from "../core/keep.js";

let refused = null, redraw = () => {}, link = "", provider = null;

export const title = () => "Sign in";
export function enter(draw) {
  redraw = draw;
  signInProvider().then((told) => { provider = told; redraw(); });
  if (!location.hash.startsWith("#ccl_")) return;
  link = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  begin({ link });
}

async function begin(by) {
  try {
    await signIn(by);
    keep("signed-in", "yes");
    const back = new URLSearchParams(location.search).get("to") ?? "/";
    if (location.pathname === "/sign-in") location.assign(back.startsWith("/") && !back.startsWith("//") ? back : "/");
    else location.reload();   // every page asks anew, and the stream begins
  } catch (error) {
    refused = error;
    redraw();
  }
}

async function submit(event) {
  event.preventDefault();
  const field = event.target.elements.token;
  await begin({ token: field.value.trim() });
  field.focus();
}

export const view = () => html`<div class="page"><section class="card sign-in" aria-labelledby="sign-in">
  <div class="card-head"><h1 id="sign-in">Sign in</h1></div>
  <div class="card-body">
    ${provider ? html`<p><a class="button primary" rel="external" href=${provider.url} @click=${(event) => { event.preventDefault(); location.assign(provider.url); }}>Sign in with ${provider.name}</a></p>` : nothing}
    <p>${provider ? "Or with" : "This service wants"} a token. Paste yours: this browser stays signed in until it rests for 12 hours, out of reach of scripts.</p>
    <form @submit=${submit}><label class="field"><span>Token</span><input name="token" type="password" autocomplete="current-password" required autofocus placeholder="cck_…"></label>
      <button class="button primary">Sign in</button></form>
    ${refused ? fault(refused) : nothing}
    ${refused && link ? html`<p>A link works once, and for a minute. Make another with <code>clickclock open</code>.</p>` : nothing}
    <p class="faint">You have none? Ask whoever runs clickclock. On the service's host, this makes one:</p>
    <pre class="command" tabindex="0"><code>clickclock token create NAME --role viewer</code></pre></div></section></div>`;
