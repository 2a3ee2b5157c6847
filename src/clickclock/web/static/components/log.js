// The output of one attempt, of any length: the worker holds it, and only what is on the screen is drawn.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { pieces } from "../core/ansi.js";
import { ROW, WRAP_LINES_MAX } from "./log-reader.js";
import { counted, empty, fault, number } from "./parts.js";

function marked(text, query) {
  const needle = query.startsWith("/") && query.length > 2 ? "" : query.toLowerCase(), low = text.toLowerCase();
  if (!needle || low.length !== text.length) return text;
  const made = [];
  let at = 0;
  for (let found = low.indexOf(needle); found >= 0; found = low.indexOf(needle, at)) {
    made.push(text.slice(at, found), html`<mark>${text.slice(found, found + needle.length)}</mark>`);
    at = found + needle.length;
  }
  return [...made, text.slice(at)];
}

const line = (log, { line: at, text }) => html`<div data-at=${at} class="line ${at >= log.chosen[0] && at <= log.chosen[1] ? "chosen" : ""} ${log.hits[log.hit] === at ? "hit" : ""}"><b data-line=${at}>${number(at + 1)}</b><span>${pieces(text).map(({ text: part, name }) => (name ? html`<span class=${name}>${marked(part, log.query)}</span>` : marked(part, log.query)))}</span></div>`;

function found(log) {
  if (log.isBad) return "no valid pattern";
  if (!log.query) return nothing;
  if (!log.hits.length) return log.isSearching ? "looking …" : "not found";
  return `${log.hit + 1} of ${number(log.hits.length)}${log.isSearching ? " …" : log.hits.length === 1 ? " line" : " lines"}`;
}

const bar = (log, raw) => html`<div class="log-bar" role="search" aria-label="Find in the output">
  <input type="search" data-find placeholder="Find a text, or /a pattern/" aria-label="Find in the output" .value=${log.query} @input=${(event) => log.look(event.target.value)}
    @keydown=${(event) => { if (event.key === "Enter") log.go(log.hit + (event.shiftKey ? -1 : 1)); else if (event.key === "Escape") event.target.blur(); }}>
  <button class="button" ?disabled=${!log.hits.length} @click=${() => log.go(log.hit - 1)} aria-label="Previous line that has it">↑</button>
  <button class="button" ?disabled=${!log.hits.length} @click=${() => log.go(log.hit + 1)} aria-label="Next line that has it">↓</button>
  <span class="found" role="status">${found(log)}</span><span class="grow"></span>
  <label class="goto">Line <input id="line" type="number" min="1" max=${log.count || 1} @change=${(event) => log.choose(Math.min(log.count, Math.max(1, Number(event.target.value))) - 1)}></label>
  <button class="button" ?disabled=${!log.loud.length} @click=${() => log.nextFault()}>Next error <span class="faint">${number(log.loud.length)}</span><kbd>e</kbd></button>
  <button class="button" aria-pressed=${log.isFollowing} @click=${() => log.follow()}>Follow<kbd>f</kbd></button>
  <button class="button" aria-pressed=${log.isWrapped} ?disabled=${!log.canWrap} title=${log.canWrap ? "" : `Lines wrap in an output of at most ${number(WRAP_LINES_MAX)} lines.`} @click=${() => log.wrap()}>Wrap<kbd>w</kbd></button>
  <button class="button" ?disabled=${log.chosen[1] < 0} @click=${() => log.copy()}>Copy lines</button>
  <a class="button" href=${raw} download="output.txt" target="_blank">Download</a></div>`;

const lines = (log) => html`<div class="log-body"><div class="scroll" tabindex="0" role="region" aria-label="Output, ${counted(log.count, "line")}"
    @click=${(event) => event.target.dataset.line && log.choose(Number(event.target.dataset.line), { isRange: event.shiftKey, stay: true })} @scroll=${() => log.scrolled()}>
    <div class="tall-space ${log.isWrapped ? "wrapped" : ""}" .style=${log.isWrapped ? "" : `block-size:${log.count * ROW}px`}><div class="window" .style=${log.isWrapped ? "" : `transform:translateY(${(log.rows[0]?.line ?? 0) * ROW}px)`}>${repeat(log.rows, (each) => each.line, (each) => line(log, each))}</div></div></div>
  <canvas class="map" aria-hidden="true" @click=${(event) => log.see(Math.floor((event.offsetY / event.target.clientHeight) * log.count))}></canvas>
  <p class="progress" role="status">${counted(log.count, "line")} · ${(log.size / 1e6).toFixed(1)} MB${log.done ? "" : " · reading …"}</p></div>`;

/** `raw` is the address of the output itself. */
export function logView(log, raw) {
  if (log.fault?.code === "logNotFound") return empty("No output", log.fault.message);
  if (log.fault) return fault(log.fault);
  if (log.done && !log.count) return html`<p class="note">It wrote nothing.</p>`;
  return html`<div class="log">${bar(log, raw)}${lines(log)}</div>`;
}
