// The first three things to try, until somebody has seen enough: each says what to do, and is ticked when it was done.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { keep, kept } from "../core/keep.js";
import { glyph } from "../core/states.js";
import { clickUrl } from "../core/collector.js";

const NAME = "firstSteps";
export const areWanted = () => kept(NAME, ["seen"], "") !== "seen";

const step = (isDone, heading, words, command, link) => html`<li class="step ${isDone ? "is-done" : ""}"><h3>${isDone ? html`<span class="succeeded">${glyph("succeeded", "done")}</span>` : nothing} ${heading}</h3><p class="under">${words}</p>
  ${command ? html`<pre class="command" tabindex="0"><code>${command}</code></pre>` : nothing}${link ? html`<a class="inline" href=${link[0]}>${link[1]}</a>` : nothing}</li>`;

/** `done` has what was done so far: `ran`. `draw` is called when the reader puts them away. */
export const firstSteps = (done, draw) => html`<section class="card" aria-labelledby="steps"><div class="card-head"><h2 id="steps">${clickUrl ? "Three" : "Two"} things to try</h2><button class="button small more" @click=${() => { keep(NAME, "seen"); draw(); }}>Put away</button></div>
  <ol class="steps">
    ${step(done.ran, "Run a job, and watch it", "It appears in the lanes below, and its output while it runs.", "clickclock trigger examples countdown --follow", ["/jobs", "or with a form, from the list of jobs"])}
    ${clickUrl ? step(false, "Send a click", "As a landing page would. 204 means that it is on disk.", `curl -i "${clickUrl}/aclick?client_id=shop-1&cli_ubid=visitor-7&utm_source=newsletter&event_time=$(date +%s)000"`, null) : nothing}
    ${step(false, "See when a job will run", "A schedule's page shows its next times, and the days on which the clock is changed.", "", ["/schedules/examples.nightly-report", "the schedule of nightly-report"])}</ol></section>`;
