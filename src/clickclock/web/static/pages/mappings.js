// Which image a command gets in a container: the prefixes, and a command to try against them.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { field } from "../components/dialog.js";
import { card, empty, fault, ignoredFilters, waiting } from "../components/parts.js";
import { choose, filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { glyph } from "../core/states.js";

let mappings = null, choice = null, wrong = null, refused = null, redraw = () => {}, asked = 0;

export const title = () => "Mappings";

export function enter(draw) {
  redraw = draw;
  [mappings, choice, wrong, refused] = [null, null, null, null];
  load();
}

async function load() {
  const mine = ++asked, { command } = filters(["command"]);
  try { mappings = (await ask("commandPrefixImageMapping", { limit: 1000 })).commandPrefixImageMappings; wrong = null; } catch (error) { wrong = error; }
  try { [choice, refused] = [command ? (await ask("commandPrefixImageMapping", { command, limit: 1 })).choice : null, null]; } catch (error) { [choice, refused] = [null, error]; }
  if (mine === asked) redraw();
}

function submit(event) {
  event.preventDefault();
  choose({ command: String(new FormData(event.target).get("command")).trim() }, { push: true });
  load();
}

const attempt = () => card("try", "Try a command", html`<form class="try" @submit=${submit}>${field("Command", html`<input name="command" data-find value=${filters(["command"]).command} maxlength="4096" spellcheck="false" autocomplete="off" placeholder="python -m etl load">`)}<button class="button primary">Try</button></form>
  <div role="status">${refused ? fault(refused) : choice ? html`<p class="note">${glyph(choice.image ? "succeeded" : "failed")}<span>${choice.image ? html`It runs in <b>${choice.image}</b>.` : html`<b>It gets no image.</b>`} ${choice.reason}</span></p>` : nothing}</div>`);

const row = (each) => html`<tr data-row><td class="cell-name"><code>${each.prefix}</code></td><td><code>${each.image}</code></td><td class="faint">${each.description ?? nothing}</td></tr>`;

export function view() {
  if (!mappings && !wrong) return waiting("Mappings");
  return html`<div class="page"><div class="page-head"><h1>Mappings</h1></div>${ignoredFilters(filters(["command"]).ignored)}${wrong ? fault(wrong) : nothing}${attempt()}
    ${mappings?.length ? card("prefixes", "Prefixes and their images", html`<div class="table-box" tabindex="0" role="region" aria-label="Prefixes"><table class="stacked" data-rows><thead><tr><th scope="col">Command begins with</th><th scope="col">Image</th><th scope="col">What for</th></tr></thead><tbody>${repeat(mappings, (each) => each.prefix, row)}</tbody></table></div>`, { count: mappings.length, note: "the longest that fits wins" })
      : mappings ? html`<section class="card">${empty("There is no mapping", "In a container a command runs in the image that its first words name:", "clickclock mapping set python python:3.13")}</section>` : nothing}</div>`;
}
