// The hour ahead and the half hour before: one lane a job, with what ran, what runs and what is planned.
import { html, svg } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { isOver, STATES, toneOf, why, wordOf } from "../core/states.js";
import { clock, full, minute, ms, span } from "../core/time.js";
import { jobLink, jobOf } from "./parts.js";

export const PAST = 30 * 60_000, AHEAD = 60 * 60_000;
const WIDTH = PAST + AHEAD, TEN_MINUTES = 600_000;
const NEAR = 0.75;   // percent of the width: marks that are nearer to each other become one band
const x = (at, now) => Math.max(0, Math.min(100, ((at - now + PAST) / WIDTH) * 100));

/** One row a job: `triggers` of the past, and `planned`: schedules with their times to come. Running ones come first. */
export function rowsOf(triggers, planned, now) {
  const rows = new Map();
  const row = (of) => rows.get(jobOf(of)) ?? rows.set(jobOf(of), { of, past: [], next: [] }).get(jobOf(of));
  for (const each of triggers) {
    const from = ms(each.startedAt ?? each.dueTime), to = ms(each.finishedAt) ?? (isOver(each.state) ? from : now);
    if (to > now - PAST && from < now && each.state !== "queued") row(each).past.push({ from, to, each });
  }
  for (const { schedule, times } of planned) {
    const next = times.filter((at) => at > now && at < now + AHEAD);
    if (next.length || schedule.paused) Object.assign(row(schedule), schedule.paused ? { paused: true } : {}).next.push(...next);
  }
  for (const each of rows.values()) { each.past.sort((a, b) => a.from - b.from); each.next.sort((a, b) => a - b); }
  const weight = (each) => (each.past.some((mark) => !isOver(mark.each.state)) ? 0 : each.next[0] ?? Infinity);
  return [...rows.values()].sort((a, b) => weight(a) - weight(b) || jobOf(a.of).localeCompare(jobOf(b.of)));
}

function bands(marks, near = NEAR) {
  const made = [];
  for (const mark of marks) {
    const last = made.at(-1);
    if (last && mark.a - last.b < near) { last.b = Math.max(last.b, mark.b); last.count += 1; } else made.push({ ...mark, count: 1 });
  }
  return made;
}

function pastMark({ a, b, count, each }) {
  const tone = toneOf(each.state), said = count > 1 ? `${count} × ${wordOf(each.state)}` : `${wordOf(each.state)} · ${full(ms(each.dueTime))} ${why(each)}`;
  const above = svg`<svg x="${(a + b) / 2}%" y="0" width="9" height="9" class="mark above" viewBox="0 0 16 16"><path class="stroke ${tone}" d=${STATES[each.state]?.glyph ?? ""} /><title>${said}</title></svg>`;
  if (each.state === "skipped") return svg`${count > 1 ? svg`<line class="skips" x1="${a}%" x2="${b}%" y1="4.5" y2="4.5" />` : ""}${above}`;
  const body = svg`<rect class="done ${tone}" x="${a}%" width="${Math.max(b - a, 0.22)}%" y="8" height="12" rx="2"><title>${said}</title></rect>`;
  return ["succeeded", "cancelled", "running", "starting"].includes(each.state) ? body : svg`${body}${above}`;
}

const plannedMark = (mark) => (mark.count > 3
  ? svg`<rect class="planned band" x="${mark.a}%" width="${Math.max(mark.b - mark.a, 0.4)}%" y="8" height="12" rx="3"><title>${mark.count} times, about every ${span((((mark.b - mark.a) / 100) * WIDTH) / (mark.count - 1))}</title></rect>`
  : svg`<rect class="planned" x="${mark.a}%" width="4" y="9" height="10" rx="1" transform="translate(-2 0)"><title>${full(mark.at)}</title></rect>`);

function lane(row, now) {
  const kinds = [...Map.groupBy(row.past, ({ each }) => each.state).values()];
  const past = kinds.flatMap((marks) => bands(marks.map(({ from, to, each }) => ({ a: x(from, now), b: x(to, now), each })), marks[0].each.state === "skipped" ? 3 * NEAR : NEAR));
  past.sort((one, other) => Number(one.each.state === "skipped") - Number(other.each.state === "skipped"));
  const next = bands(row.next.map((at) => ({ a: x(at, now), b: x(at, now), at })));
  const running = row.past.find((mark) => !isOver(mark.each.state));
  const label = running ? `running ${span(now - running.from)}` : row.paused ? "paused" : row.next.length ? `in ${span(row.next[0] - now)}` : "not scheduled";
  return html`<li class="lane">${jobLink(row.of)}<span class="lane-next ${running ? "running" : ""}">${label}</span>
    <svg class="lane-track" role="img" aria-label="${jobOf(row.of)}: ${row.past.length} in the last half hour, ${label}, ${row.next.length} to come in the next hour">
      <line x1="0" x2="100%" y1="14" y2="14" class="rail" />${past.map(pastMark)}${next.map(plannedMark)}</svg></li>`;
}

function axis(now) {
  const marks = [];
  for (let at = Math.ceil((now - PAST) / TEN_MINUTES) * TEN_MINUTES; at < now + AHEAD - 100_000; at += TEN_MINUTES) if (Math.abs(at - now) > 720_000) marks.push(at);
  return html`<svg class="axis" aria-hidden="true">${marks.map((at) => svg`<text x="${x(at, now)}%" y="14" class=${(at / TEN_MINUTES) % 3 ? "minor" : ""} text-anchor="middle">${minute(at)}</text>`)}
    <text class="now-word" x="${x(now, now)}%" y="14" text-anchor="middle">${clock(now)}</text></svg>`;
}

export const lanes = (rows, now) => html`<div class="lanes-body">${axis(now)}<ol class="lanes">${repeat(rows, (row) => jobOf(row.of), (row) => lane(row, now))}</ol></div>`;
