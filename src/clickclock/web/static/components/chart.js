// Small charts as SVG: columns for counts, a band with a line for durations. One viewBox unit is a column's share.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { number } from "./parts.js";
import { day, full, iso, minute, ms, span } from "../core/time.js";

const HEIGHT = 100, PARTS = [["succeeded", "succeeded"], ["failed", "failed"], ["timedOut", "timedOut"], ["lost", "lost"], ["cancelled", "cancelled"], ["skipped", "skipped"]];

const HOUR = 3_600_000, NONE = { totalTriggers: 0, succeeded: 0, failed: 0, timedOut: 0, lost: 0, cancelled: 0, skipped: 0 };
/** Every hour of a window, those without a bucket as empty ones: a gap is seen as a gap. */
export function everyHour(buckets, from, to) {
  const by = new Map(buckets.map((each) => [Math.floor(ms(each.from) / HOUR), each])), first = Math.floor(from / HOUR);
  return Array.from({ length: Math.floor(to / HOUR) - first + 1 }, (_, i) => by.get(first + i) ?? { ...NONE, from: iso((first + i) * HOUR) });
}

const axis = (buckets) => {
  const at = [0, Math.floor(buckets.length / 2), buckets.length - 1].filter((each, i, all) => each >= 0 && all.indexOf(each) === i);
  const isDay = buckets.length > 1 && ms(buckets[1].from) - ms(buckets[0].from) >= 80_000_000;
  return html`<div class="chart-axis" aria-hidden="true">${at.map((each) => html`<span>${isDay ? day(ms(buckets[each].from)) : `${day(ms(buckets[each].from))} ${minute(ms(buckets[each].from))}`}</span>`)}</div>`;
};

/** How many ended in which way, a column a bucket. */
export function outcomes(buckets, label) {
  const top = Math.max(1, ...buckets.map((each) => each.totalTriggers));
  return html`<figure class="chart"><figcaption>${label} <span class="faint">at most ${number(top)}</span></figcaption>
    <svg viewBox="0 0 ${buckets.length || 1} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}: ${buckets.length} columns, at most ${top} in one">${buckets.map((each, i) => {
    let y = HEIGHT;
    return svg`<g><title>${full(ms(each.from))}: ${each.succeeded} succeeded, ${each.failed + each.timedOut + each.lost} failed, ${each.skipped} skipped</title><rect class="hover" x=${i} width="1" y="0" height=${HEIGHT} />${PARTS.map(([name, tone]) => {
      const height = (each[name] / top) * HEIGHT;
      y -= height;
      return height ? svg`<rect class="column ${tone}" x=${i + 0.08} width="0.84" y=${y} height=${height} />` : nothing;
    })}</g>`;
  })}</svg>${axis(buckets)}</figure>`;
}

/** A measure in ms: the median as a line, and the band up to 95 of 100. */
export function spread(buckets, measure, label) {
  const known = buckets.map((each, i) => ({ i, of: each[measure], at: ms(each.from) })).filter(({ of }) => of?.p50 != null);
  if (!known.length) return html`<figure class="chart"><figcaption>${label}</figcaption><p class="note">Nothing was measured.</p></figure>`;
  const top = Math.max(1, ...known.map(({ of }) => of.p95)), y = (value) => HEIGHT - (value / top) * HEIGHT * 0.94, x = (i) => i + 0.5;
  const line = (name) => known.map(({ i, of }) => `${x(i)},${y(of[name]).toFixed(2)}`).join(" ");
  const band = `${line("p95")} ${[...known].reverse().map(({ i, of }) => `${x(i)},${y(of.p50).toFixed(2)}`).join(" ")}`;
  return html`<figure class="chart"><figcaption>${label} <span class="faint">lately half within ${span(known.at(-1).of.p50)}, 95 of 100 within ${span(known.at(-1).of.p95)}</span></figcaption>
    <svg viewBox="0 0 ${buckets.length} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}: ${known.length} points, at most ${span(top)}">
      <polygon class="band" points=${band} /><polyline class="median" points=${line("p50")} />
      ${known.map(({ i, of, at }) => svg`<g><title>${full(at)}: half within ${span(of.p50)}, 95 of 100 within ${span(of.p95)}</title><rect class="hover" x=${i} width="1" y="0" height=${HEIGHT} /><rect class="point" x=${i + 0.3} width="0.4" y=${y(of.p50) - 1.5} height="3" /></g>`)}</svg>${axis(buckets)}</figure>`;
}
