// Who may look: asks for a token where the service wants one. The token becomes a cookie that no script can read.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { fault } from "../components/parts.js";
import { signIn } from "../core/api.js";
import { keep } from "../core/keep.js";

let refused = null, redraw = () => {};

export const title = () => "Sign in";
export const enter = (draw) => { redraw = draw; };

async function submit(event) {
  event.preventDefault();
  const field = event.target.elements.token;
  try {
    await signIn(field.value.trim());
    keep("signed-in", "yes");
    location.reload();   // every page asks anew, and the stream begins
  } catch (error) {
    refused = error;
    redraw();
    field.focus();
  }
}

export const view = () => html`<div class="page"><section class="card sign-in" aria-labelledby="sign-in">
  <div class="card-head"><h1 id="sign-in">Sign in</h1></div>
  <div class="card-body">
    <p>This service wants a token. Paste yours: this browser keeps it for 12 hours, out of reach of scripts.</p>
    <form @submit=${submit}><label class="field"><span>Token</span><input name="token" type="password" autocomplete="current-password" required autofocus placeholder="cck_…"></label>
      <button class="button primary">Sign in</button></form>
    ${refused ? fault(refused) : nothing}
    <p class="faint">You have none? Ask whoever runs clickclock. On the service's host, this makes one:</p>
    <pre class="command" tabindex="0"><code>clickclock token create NAME --role viewer</code></pre></div></section></div>`;
