// What a job runs after and what runs after it, as far as the chain goes, each with its newest run.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { counted, fault, jobLink, jobName, jobOf, time, waiting } from "../components/parts.js";
import { to } from "../core/address.js";
import { ask } from "../core/api.js";
import { reloadOn } from "../core/live.js";
import { badge, toneOf } from "../core/states.js";
import { ms } from "../core/time.js";
import { Turns } from "../core/turns.js";

const JOBS_MAX = 60, WIDTH = 240, HEIGHT = 76, GAP_X = 132, GAP_Y = 16, BELOW = 32;
const CONDITIONS = { finished: "however it ends", failed: "if it fails", anySucceeded: "if any succeeds" };
let of = {}, jobs = null, links = [], isCut = false, wrong = null, redraw = () => {};
const turns = new Turns();

export const title = () => `Chain of ${jobOf(of)}`;

export function enter(draw, { application, job }) {
  [of, jobs, links, wrong, redraw] = [{ application, jobName: job }, null, [], null, draw];
  turns.begin();
  load();
  return reloadOn(({ type, data }) => type.startsWith("clickclock.trigger.") && (!jobs || jobs.has(jobOf(data))), load);
}

/** From the job outwards, a step at a time, until nothing is new or the picture is full. */
async function load() {
  const mine = turns.next(), known = new Map([[jobOf(of), { of, column: 0, last: null }]]), found = new Map();
  try {
    let edge = [known.get(jobOf(of))];
    while (edge.length && known.size < JOBS_MAX) {
      const details = await Promise.all(edge.map((each) => ask("jobDetail", each.of).then(({ jobDetail }) => [each, jobDetail])));
      edge = [];
      for (const [each, detail] of details) {
        each.last = detail.recent[0] ?? null;
        for (const [list, by] of [[detail.upstream, -1], [detail.dependents, 1]]) for (const other of list) {
          const [from, to_] = by < 0 ? [jobOf(other), jobOf(each.of)] : [jobOf(each.of), jobOf(other)];
          found.set(`${from}→${to_}`, { from, to: to_, when: other.when });
          if (known.has(jobOf(other))) continue;
          const next = { of: { application: other.application, jobName: other.jobName }, column: each.column + by, last: other.lastTrigger, exists: other.exists };
          known.set(jobOf(other), next);
          if (other.exists) edge.push(next);
        }
      }
    }
    if (!turns.take(mine)) return;
    isCut = edge.length > 0;
    for (let again = true, rounds = 0; again && rounds < JOBS_MAX; rounds++) {   // each runs to the right of all that it runs after
      again = false;
      for (const { from, to: to_ } of found.values()) if (known.get(to_).column <= known.get(from).column) { known.get(to_).column = known.get(from).column + 1; again = true; }
    }
    [jobs, links, wrong] = [known, [...found.values()], null];
  } catch (error) { if (turns.take(mine)) wrong = error; }
  redraw();
}

function placed() {
  const columns = Map.groupBy([...jobs.values()], (each) => each.column), first = Math.min(...columns.keys()), tallest = Math.max(...[...columns.values()].map((each) => each.length));
  for (const [column, list] of columns) list.forEach((each, row) => { each.x = (column - first) * (WIDTH + GAP_X); each.y = (row + (tallest - list.length) / 2) * (HEIGHT + GAP_Y); });
  return { width: (Math.max(...columns.keys()) - first + 1) * (WIDTH + GAP_X) - GAP_X, height: tallest * (HEIGHT + GAP_Y) - GAP_Y, below: links.some(isBehind) ? BELOW : 0 };
}

/** Whether a job stands in the straight way of an arrow; then it goes below all of them. */
function isBehind({ from, to: to_ }) {
  const a = jobs.get(from), b = jobs.get(to_), top = Math.min(a.y, b.y), bottom = Math.max(a.y, b.y) + HEIGHT;
  return [...jobs.values()].some((each) => each.column > a.column && each.column < b.column && each.y < bottom && each.y + HEIGHT > top);
}

function line({ from, to: to_, when }, height) {
  const a = jobs.get(from), b = jobs.get(to_), x1 = a.x + WIDTH, y1 = a.y + HEIGHT / 2, x2 = b.x, y2 = b.y + HEIGHT / 2, middle = (x1 + x2) / 2, bend = GAP_X / 2, low = height + BELOW / 2;
  const isBelow = isBehind({ from, to: to_ }), way = isBelow ? `C${x1 + bend} ${y1} ${x1} ${low} ${x1 + bend} ${low}H${x2 - bend}C${x2} ${low} ${x2 - bend} ${y2} ${x2} ${y2}` : `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  return svg`<path class="chain-line ${a.last ? toneOf(a.last.state) : ""}" d="M${x1} ${y1}${way}" /><path class="chain-head ${a.last ? toneOf(a.last.state) : ""}" d="M${x2 - 7} ${y2 - 4.5} ${x2} ${y2} ${x2 - 7} ${y2 + 4.5}" />${CONDITIONS[when] ? svg`<text x=${middle} y=${(isBelow ? low : (y1 + y2) / 2) - 6} text-anchor="middle">${CONDITIONS[when]}</text>` : nothing}`;
}

const box = (each) => html`<li class="chain-job ${jobOf(each.of) === jobOf(of) ? "here" : ""}" .style=${`inset-inline-start:${each.x}px;inset-block-start:${each.y}px`}>${each.exists === false ? html`${jobName(each.of)} <span class="faint">is gone</span>` : jobLink(each.of)}
  ${each.last ? html`<a class="under" href=${to("/runs", each.last.triggerId)}>${badge(each.last.state)} ${time(ms(each.last.dueTime))}</a>` : html`<span class="under">never ran</span>`}</li>`;

export function view() {
  if (wrong && !jobs) return html`<div class="page"><h1>${title()}</h1>${fault(wrong)}</div>`;
  if (!jobs) return waiting(title());
  const { width, height, below } = placed();
  return html`<div class="page"><div class="page-head"><h1>Chain of ${jobLink(of)}</h1></div>${wrong ? fault(wrong) : nothing}
    ${isCut ? html`<p class="banner">The chain goes on; its ${JOBS_MAX} nearest jobs are shown.</p>` : nothing}
    <section class="card"><div class="chain-scroll" tabindex="0" role="region" aria-label="The chain: ${counted(jobs.size, "job")}, ${counted(links.length, "dependency", "dependencies")}"><div class="chain" .style=${`inline-size:${width}px;block-size:${height + below}px`}>
      <svg width=${width} height=${height + below} aria-hidden="true">${links.map((each) => line(each, height))}</svg><ul>${[...jobs.values()].sort((a, b) => a.x - b.x || a.y - b.y).map(box)}</ul></div></div>
      <details class="card-body"><summary class="under">The same in words</summary><ul class="under">${links.map((each) => html`<li>${each.to} runs after ${each.from}${CONDITIONS[each.when] ? `, ${CONDITIONS[each.when]}` : ", if it succeeds"}</li>`)}</ul></details></section></div>`;
}
