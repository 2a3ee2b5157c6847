// The local day on which a zone's clock is changed, as a ruler of hours, with the times of a schedule on it. A missing hour is
// cut out, an hour that comes twice is marked. The times are the service's.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { dayIn, minuteIn, ms, span } from "../core/time.js";

const HOUR = 3_600_000, MINUTE = 60_000, LABEL_EVERY = 6, FEW = 60;

/** A change of a zone's clock as the service says it → `{ at, start, end, by }`: its local day, in ms. */
export function dayOfChange({ at, localBefore, minutes }) {
  const [, hours, minute] = /T(\d\d):(\d\d)/.exec(localBefore), instant = ms(at), by = minutes * MINUTE, start = instant - Number(hours) * HOUR - Number(minute) * MINUTE;
  return { at: instant, start, end: start + 24 * HOUR - by, by };
}

function ruler({ at, start, end, by }, times, timeZone) {
  const x = (instant) => `${(((instant - start) / (end - start)) * 100).toFixed(3)}%`, hours = [];
  for (let hour = start; hour <= end; hour += HOUR) hours.push(hour);
  const width = times.length > FEW ? 1.5 : 5;
  return html`<svg class="clock-day" role="img" aria-label="${dayIn(start, timeZone)}: the clock goes ${by > 0 ? "forward" : "back"} by ${span(Math.abs(by))}, ${times.length} times on that day">
    ${by < 0 ? svg`<rect class="fold" x=${x(at + by)} width="${((2 * -by) / (end - start)) * 100}%" y="16" height="26" />` : nothing}
    ${hours.map((hour) => svg`<line class="tick" x1=${x(hour)} x2=${x(hour)} y1="36" y2="42" />${hour === start || hour === end || Number(minuteIn(hour, timeZone).slice(0, 2)) % LABEL_EVERY === 0 ? svg`<text x=${x(hour)} y="58" text-anchor=${hour === start ? "start" : hour === end ? "end" : "middle"}>${minuteIn(hour, timeZone)}</text>` : nothing}`)}
    <line class="rail" x1="0" x2="100%" y1="42" y2="42" />
    <line class="change" x1=${x(at)} x2=${x(at)} y1="12" y2="46" /><text class="change-word" x=${x(at)} y="9" text-anchor="start">${minuteIn(at - MINUTE, timeZone)} → ${minuteIn(at, timeZone)}</text>
    ${times.map((each) => svg`<rect class=${each.skipReason ? "fire skipped" : "fire"} x=${x(ms(each.time))} y="20" width=${width} height="22" rx="1.5" transform="translate(${-width / 2} 0)"><title>${each.localTime} ${each.note ?? ""}</title></rect>`)}</svg>`;
}

/** One change of the clock: the day, its ruler, and what the rule did to each time that it touched. */
export function clockDay(change, times, timeZone) {
  const noted = times.filter((each) => each.note || each.skipReason);
  return html`<figure class="clock-change"><figcaption><b>${dayIn(change.start, timeZone)}</b> <span class="faint">${change.by > 0 ? `${span(change.by)} are missing` : `${span(-change.by)} come twice`}; ${times.length === 1 ? "1 time" : `${times.length} times`} on that day</span></figcaption>
    ${ruler(change, times, timeZone)}
    ${noted.length ? html`<ul class="under">${noted.slice(0, 4).map((each) => html`<li>${each.localTime}: ${each.note ?? each.skipReason}</li>`)}${noted.length > 4 ? html`<li class="faint">and ${noted.length - 4} more</li>` : nothing}</ul>` : html`<p class="under">The change touches none of them.</p>`}</figure>`;
}
