// What runs now, against what it usually takes.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { to } from "../core/address.js";
import { isOver } from "../core/states.js";
import { ms, span } from "../core/time.js";
import { jobName } from "./parts.js";

const LONG = 1.5;   // times the usual
export const isRunning = (each) => !isOver(each.state) && each.state !== "queued";
export const began = (each) => ms(each.startedAt ?? each.dueTime);

/** A bar of the time gone; the tick is the usual time. */
export const runBar = (gone, usual) => html`<span class="run-bar ${usual && gone > usual * LONG ? "long" : ""}"><i .style=${`inline-size:${usual ? Math.min(100, (gone / (usual * LONG)) * 100) : 40}%`}></i>${usual ? html`<b></b>` : nothing}</span>`;

function run(each, usual, now) {
  const gone = Math.max(0, now - began(each));
  const words = !usual ? "first run, nothing to compare with" : gone > usual * LONG ? `usually ${span(usual)}: longer than usual` : `usually ${span(usual)}`;
  return html`<li><a href=${to("/runs", each.triggerId)} class="run">${jobName(each)}<span class="run-time">${span(gone)}</span>${runBar(gone, usual)}
    <span class="under">${each.attempt > 1 ? `attempt ${each.attempt} · ` : ""}${words}</span></a></li>`;
}

/** `usualOf(trigger)` is what its job usually takes, in ms. */
export function running(triggers, usualOf, now) {
  const live = triggers.filter(isRunning).sort((a, b) => began(a) - began(b));
  return live.length ? html`<ol class="runs-now">${repeat(live, (each) => each.triggerId, (each) => run(each, usualOf(each), now))}</ol>` : html`<p class="note">Nothing runs.</p>`;
}
