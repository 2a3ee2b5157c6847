// What runs here and by which settings, without a secret; and what is wrong with it now.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { filterBar } from "../components/filter-bar.js";
import { card, empty, fault, figure, ignoredFilters, number, prose, time, waiting } from "../components/parts.js";
import { settingTabs } from "../components/setting-tabs.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { whoAsks } from "../core/permissions.js";
import { glyph } from "../core/states.js";
import { ms, relative } from "../core/time.js";

const NAMES = ["name", "only"];
const FIELDS = [{ name: "name", label: "Setting", placeholder: "a part of its name" }, { name: "only", label: "Show", options: [["", "all"], ["set", "what is not the default"]] }];
let told = null, findings = [], wrong = null, redraw = () => {};

export const title = () => "Settings";

export function enter(draw) {
  redraw = draw;
  told = null;
  load();
}

async function load() {
  try {
    const [found, { cluster }] = await Promise.all([ask("settings"), ask("cluster")]);
    [told, findings, wrong] = [found, cluster.findings, null];
  } catch (error) { wrong = error; }
  redraw();
}

const value = (of) => (of == null ? html`<span class="faint">none</span>` : Array.isArray(of) ? (of.length ? of.map((each) => html`<code>${each}</code> `) : html`<span class="faint">none</span>`) : html`<code>${typeof of === "number" ? number(of) : String(of)}</code>`);

const row = (each) => html`<tr data-row class=${each.isDefault ? "" : "is-set"}><th scope="row"><code>${each.name}</code></th><td class="cell-why">${each.isDefault ? value(each.value) : html`<b>${value(each.value)}</b>${each.default == null ? nothing : html` <span class="under">instead of ${value(each.default)}</span>`}`}</td><td class="cell-why faint">${prose(each.description)}</td></tr>`;

function settings() {
  const { name, only } = filters(NAMES), fitting = told.settings.filter((each) => each.name.includes(name.toLowerCase()) && (only !== "set" || !each.isDefault)).sort((a, b) => a.isDefault - b.isDefault);
  return card("settings", "Settings", fitting.length ? html`<div class="table-box" tabindex="0" role="region" aria-label="All settings"><table class="cards settings" data-rows><thead><tr><th scope="col">Name</th><th scope="col">Value</th><th scope="col">What it means</th></tr></thead>
      <tbody>${repeat(fitting, (each) => each.name, row)}</tbody></table></div>` : empty("No setting fits", "Take a filter away."), { count: fitting.length, note: "read once, at the start; secrets are left out" });
}

const wrongNow = () => card("findings", "Wrong now", findings.length
  ? html`<ul class="attention">${findings.map((each) => html`<li>${glyph(each.severity === "fail" ? "failed" : "timedOut", each.severity)}<div><p>${prose(each.message)}</p><p class="under">${prose(each.remedy)}</p></div></li>`)}</ul>`
  : html`<p class="note">${glyph("succeeded")} Nothing.</p>`, { count: findings.length });

export function view() {
  const chosen = filters(NAMES);
  if (!told && !wrong) return waiting("Settings");
  if (!told) return html`<div class="page"><div class="page-head"><h1>Settings</h1>${settingTabs("/settings")}</div>${fault(wrong)}</div>`;
  const { program } = told, set = told.settings.filter((each) => !each.isDefault).length;
  return html`<div class="page"><div class="page-head"><h1>Settings</h1>${settingTabs("/settings")}</div>${ignoredFilters(chosen.ignored)}${wrong ? fault(wrong) : nothing}
    <div class="figures three">${figure("Version", program.version, `Python ${program.python}`)}${figure("Runs", relative(ms(program.startedAt)).replace(" ago", ""), html`since ${time(ms(program.startedAt))} on ${program.node}`)}${figure("Not the default", number(set), `of ${number(told.settings.length)} settings; you are ${whoAsks()}`)}</div>
    ${wrongNow()}${filterBar(FIELDS, chosen, redraw)}${settings()}</div>`;
}
