// The command palette: a page, a job, a schedule or a group by a part of its name.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { to } from "../core/address.js";
import { ask } from "../core/api.js";
import { go } from "../core/router.js";
import { fault } from "./parts.js";

const WAIT_MS = 120, LIMIT = 8;
const ADDRESSES = {
  job: (found) => to("/jobs", found.application, found.jobName), schedule: (found) => to("/schedules", found.scheduleId), trigger: (found) => to("/runs", found.name),
  application: (found) => `/jobs?application=${encodeURIComponent(found.application)}`, group: (found) => `/jobs?groupName=${encodeURIComponent(found.name)}`,
};
const element = document.body.appendChild(document.createElement("dialog"));
element.className = "palette";
element.setAttribute("aria-label", "Go to");
let items = [], at = 0, text = "", pages = [], timer = 0, asked = 0, wrong = null;

const wordOf = (found) => (found.application && found.kind !== "application" ? `${found.application}/${found.jobName ?? found.name}${found.kind === "schedule" ? `: ${found.name}` : ""}` : found.name);

async function look() {
  const mine = ++asked, low = text.toLowerCase();
  const here = pages.filter(({ word }) => word.toLowerCase().includes(low)).map(({ word, path }) => ({ kind: "page", word, address: path }));
  let found = [], failed = null;
  if (text) {
    try { found = (await ask("search", { q: text, limit: LIMIT })).matches; } catch (error) { failed = error; }
  }
  if (mine !== asked) return;
  wrong = failed;
  items = [...here, ...found.filter(({ kind }) => ADDRESSES[kind]).map((each) => ({ kind: each.kind, word: wordOf(each), address: ADDRESSES[each.kind](each) }))];
  at = 0;
  draw();
}

function press(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); at = Math.max(0, Math.min(items.length - 1, at + step)); draw(); element.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); }
  if (event.key === "Enter") { event.preventDefault(); choose(items[at]); }
}

function choose(item) {
  if (!item) return;
  element.close();
  go(item.address);
}

const draw = () => render(html`<input type="search" role="combobox" aria-expanded="true" aria-controls="found" aria-label="Go to a page, a job, a schedule or a group" aria-activedescendant=${items.length ? `found-${at}` : nothing}
    placeholder="Go to a page, a job, a schedule …" .value=${text} @keydown=${press} @input=${(event) => { text = event.target.value.trim(); clearTimeout(timer); timer = setTimeout(look, WAIT_MS); }}>
  <ul id="found" role="listbox" aria-label="Found">${items.map((each, i) => html`<li id="found-${i}" role="option" aria-selected=${i === at} @click=${() => choose(each)}><span>${each.word}</span><span class="faint">${each.kind}</span></li>`)}</ul>
  ${wrong ? fault(wrong) : items.length || !text ? nothing : html`<p class="note" role="status">Nothing has such a name.</p>`}`, element);

export function openPalette(routes) {
  pages = routes.filter(({ word }) => word);
  [text, items, at, wrong] = ["", [], 0, null];
  draw();
  element.showModal();
  look();
}
