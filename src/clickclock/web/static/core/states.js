// What a trigger can be, how it looks, and what is said about it. A glyph is a 16 by 16 path: the shape says what the
// colour says. No other file names a state or a reason.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";

const CIRCLE = "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11";
export const STATES = {
  queued:    { word: "waiting",   tone: "waiting",   glyph: `${CIRCLE}M8 5.2V8.3l2 1.2` },
  starting:  { word: "starting",  tone: "running",   glyph: `${CIRCLE}M6.8 5.8 10 8l-3.2 2.2z` },
  running:   { word: "running",   tone: "running",   glyph: `${CIRCLE}M6.8 5.8 10 8l-3.2 2.2z` },
  succeeded: { word: "succeeded", tone: "succeeded", glyph: "M3 8.4 6.4 11.8 13 4.8" },
  failed:    { word: "failed",    tone: "failed",    glyph: "M4 4l8 8M12 4l-8 8" },
  timedOut:  { word: "timed out", tone: "timedOut",  glyph: "M4 2.5h8M4 13.5h8M5 2.5c0 3.5 6 4 6 11M11 2.5c0 3.5-6 4-6 11" },
  lost:      { word: "lost",      tone: "lost",      glyph: "M5.6 6a2.4 2.4 0 1 1 3.4 2.2c-.7.4-1 .8-1 1.6M8 12.6v.1" },
  skipped:   { word: "skipped",   tone: "skipped",   glyph: `${CIRCLE}M4.2 11.8l7.6-7.6` },
  cancelled: { word: "cancelled", tone: "cancelled", glyph: "M3.5 8h9" },
};

export const SKIPS = {
  overlap: "the one before was still running",
  catchUpWindow: "too old to be made up for",
  paused: "the schedule was paused",
  excluded: "its calendar leaves that day out",
  dstGap: "the clock jumped over that time",
  jobDisabled: "the job is disabled",
  groupPaused: "its group was paused",
  upstreamFailed: "a job that it runs after did not succeed",
  upstreamSkipped: "a job that it runs after was skipped",
  upstreamSucceeded: "a job that had to fail for it succeeded",
};

const UNFINISHED = ["queued", "starting", "running"];
export const isOver = (state) => !UNFINISHED.includes(state);
export const isBad = (state) => ["failed", "timedOut", "lost"].includes(state);
const of = (state) => STATES[state] ?? { word: state, tone: "waiting", glyph: CIRCLE };
export const wordOf = (state) => of(state).word;
export const toneOf = (state) => of(state).tone;

export const glyph = (state, label = "") => html`<svg class="glyph ${toneOf(state)}" viewBox="0 0 16 16" role=${label ? "img" : nothing} aria-label=${label || nothing} aria-hidden=${label ? nothing : "true"}
  >${svg`<path d=${of(state).glyph} />`}</svg>`;

export const badge = (state) => html`<span class="badge ${toneOf(state)}">${glyph(state)}${wordOf(state)}</span>`;

/** Why a trigger is what it is, without a full stop; empty if there is nothing to say. */
export function why(trigger) {
  if (trigger.state === "skipped") {
    const reason = SKIPS[trigger.skipReason] ?? trigger.skipReason ?? "";
    return trigger.skippedCount > 1 ? `${reason} (${trigger.skippedCount} times)` : reason;
  }
  if (trigger.message) return trigger.message.replace(/\.$/, "");
  if (trigger.signal) return `ended by signal ${trigger.signal}`;
  return trigger.exitCode ? `exit code ${trigger.exitCode}` : "";
}
