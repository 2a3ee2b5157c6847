// A heat map: one figure of many jobs or machines by hour or day, those with most of it on top.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { filterBar } from "../components/filter-bar.js";
import { heat, shareOf } from "../components/heat.js";
import { card, empty, fault, ignoredFilters, jobLink, jobOf, number, waiting } from "../components/parts.js";
import { filters } from "../core/address.js";
import { ask } from "../core/api.js";
import { currentZone, day, full, iso, minute, ms, now, span } from "../core/time.js";

const HOUR = 3_600_000, DAY = 24 * HOUR, ANEW_MS = 60_000, NAMES = ["figure", "by", "span", "application", "groupName"];
const FIGURES = { lagP95: "How late: 95 of 100 within", lagP50: "How late: half within", durationP95: "How long: 95 of 100 within", durationP50: "How long: half within", failed: "How many failed", skipped: "How many were skipped", total: "How many ended" };
const SPANS = { "": ["24 hours", 1, "hour"], "3d": ["3 days", 3, "hour"], "7d": ["7 days", 7, "day"], "30d": ["30 days", 30, "day"] };
const KINDS = { "": "jobs", node: "machines" };
const FIELDS = [
  { name: "figure", label: "Figure", options: Object.entries(FIGURES).map(([value, word]) => [value === "lagP95" ? "" : value, word]) },
  { name: "by", label: "Rows", options: [["", "Jobs"], ["node", "Machines"]] },
  { name: "span", label: "Window", options: Object.entries(SPANS).map(([value, [word]]) => [value, word]) },
  { name: "application", label: "Application", placeholder: "any" }, { name: "groupName", label: "Group", placeholder: "any" },
];
let chosen = {}, grid = null, wrong = null, told = null, redraw = () => {}, asked = 0;

export const title = () => "Heat map";

export function enter(draw) {
  redraw = draw;
  [grid, wrong, told] = [null, null, null];
  load();
  const timer = setInterval(() => { if (!document.hidden) load(); }, ANEW_MS);
  return () => clearInterval(timer);
}

async function load() {
  const mine = ++asked;
  chosen = filters(NAMES);
  const [, days, bucket] = SPANS[chosen.span] ?? SPANS[""];
  try {
    const query = { figure: chosen.figure || "lagP95", application: chosen.application, bucket, timeZone: bucket === "day" ? currentZone() : null, from: iso(now() - days * DAY) };
    const answer = await (kind() ? ask("nodeStatGrid", query) : ask("jobStatGrid", { ...query, groupName: chosen.groupName }));
    if (mine !== asked) return;
    [grid, wrong] = [answer.nodeStatGrid ?? answer.jobStatGrid, null];
  } catch (error) { if (mine === asked) wrong = error; }
  redraw();
}

const kind = () => (chosen.by === "node" ? "node" : "");
const isTime = () => /^(lag|duration)/.test(grid.figure);
const shown = (value) => (value == null ? "nothing" : isTime() ? span(value) : number(value));

const whose = (row) => (!row.node ? { application: row.application, jobName: row.jobName } : chosen.application ? { application: chosen.application } : {});

function map() {
  const starts = grid.starts.map(ms), wide = starts.length > 1 ? starts[1] - starts[0] : HOUR, isDay = wide > HOUR;
  const top = Math.max(0, ...grid.rows.flatMap((row) => row.values.filter((value) => value != null)));
  const rows = grid.rows.map((row) => ({
    head: row.node ? html`<bdi>${row.node}</bdi>` : jobLink(row),
    cells: row.values.map((value, at) => (value == null ? null : {
      share: shareOf(value, top), text: "", label: `${row.node ?? jobOf(row)}, ${isDay ? day(starts[at]) : full(starts[at])}: ${shown(value)}`,
      href: `/runs?${new URLSearchParams({ ...whose(row), from: iso(starts[at]), to: iso(starts[at + 1] ?? starts[at] + wide) })}`,
    })),
  }));
  const step = Math.ceil(starts.length / 24), head = (at) => (isDay ? day(at).replace(/^\w+,? /, "") : minute(at).slice(0, 2));
  return html`${heat({ label: kind() ? "Machines by time" : "Jobs by time", corner: isDay ? "Day" : currentZone(), columns: starts.map((at, i) => (i % step ? "" : head(at))), rows, tell: (each) => { told = each; redraw(); } })}
    <p class="heat-told" role="status">${told ? told.label : html`<span class="faint">The strongest is ${shown(top)}. A cell leads to the runs that were recorded in it.</span>`}</p>`;
}

export function view() {
  chosen = filters(NAMES);
  if (!grid && !wrong) return waiting("Heat map");
  return html`<div class="page"><div class="page-head"><h1>Heat map</h1></div>${ignoredFilters(chosen.ignored)}${filterBar(FIELDS.filter((each) => each.name !== "groupName" || !kind()), chosen, () => { told = null; load(); })}${wrong ? fault(wrong) : nothing}
    ${!grid ? nothing : grid.rows.length ? card("map", FIGURES[grid.figure], map(), { count: grid.rows.length, note: `${KINDS[kind()]}, those with most of it first` })
      : html`<section class="card">${empty("Nothing ended in this window", "Choose a longer one, or run a job:", "clickclock trigger APPLICATION NAME")}</section>`}</div>`;
}
