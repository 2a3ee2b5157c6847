// The form of a schedule. Each choice says what it comes to, in words, before it is saved.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { allZones } from "../core/time.js";
import { field } from "./dialog.js";

const EXAMPLES = { cron: "30 2 * * *", interval: "PT15M", once: "2027-01-01T08:00:00Z", rrule: "FREQ=MONTHLY;BYDAY=-1FR" };
const KINDS = [["cron", "cron line"], ["interval", "interval"], ["once", "once"], ["rrule", "RFC 5545 rule"]];
const OVERLAP = {
  skip: ["skip it", "If 02:00 still runs at 03:00, 03:00 is skipped and says so."], queue: ["wait for it", "If 02:00 still runs at 03:00, 03:00 starts as soon as 02:00 has ended."],
  replace: ["replace it", "If 02:00 still runs at 03:00, it is stopped and 03:00 starts."], allow: ["run beside it", "If 02:00 still runs at 03:00, both run."],
};
const CATCH_UP = {
  latest: ["run once, for the last", "Away from 01:00 to 05:00, hourly: 05:00 runs, and 02:00 to 04:00 are skipped."], all: ["run each", "Away from 01:00 to 05:00, hourly: 02:00, 03:00, 04:00 and 05:00 all run, up to the most that is allowed."],
  none: ["run nothing late", "Away from 01:00 to 05:00, hourly: the next run is 06:00."],
};
const GAP = { fireAfterGap: ["run after the gap", "02:30 on a day without 02:30 runs at 03:00."], skip: ["skip it", "02:30 on a day without 02:30 does not run, and says so."] };
const FOLD = { first: ["the first", "02:30 that comes twice runs the first time."], second: ["the second", "02:30 that comes twice runs the second time."], both: ["both", "02:30 that comes twice runs twice."] };

const select = (name, options, value, set) => html`<select name=${name} @change=${set(name)}>${Object.entries(options).map(([each, [word]]) => html`<option value=${each} ?selected=${each === value}>${word}</option>`)}</select>`;
const policy = (label, name, options, value, set) => field(label, select(name, options, value, set), options[value]?.[1] ?? nothing);

/** `draft` has the fields as they stand; `set(name)` makes a listener that changes one; `faults` are the service's, by field. */
export function scheduleForm(draft, set, faults) {
  const hint = (name, otherwise = nothing) => (faults.get(name) ? html`<span class="field-fault">${faults.get(name)}</span>` : otherwise);
  const text = (name, more = {}) => html`<input name=${name} .value=${live(draft[name] ?? "")} @input=${set(name)} placeholder=${more.placeholder ?? ""} list=${more.list ?? nothing} type=${more.type ?? "text"} min=${more.min ?? nothing} spellcheck="false" autocomplete="off" aria-invalid=${faults.has(name) ? "true" : nothing}>`;
  const hasClock = draft.kind === "cron" || draft.kind === "rrule";
  return html`<div class="form-grid">
    ${field("Kind", html`<select name="kind" @change=${set("kind")}>${KINDS.map(([kind, word]) => html`<option value=${kind} ?selected=${kind === draft.kind}>${word}</option>`)}</select>`)}
    ${field("When", text("expression", { placeholder: EXAMPLES[draft.kind] }), hint("expression"))}
    ${field("Time zone", html`${text("timeZone", { list: "zones" })}<datalist id="zones">${allZones().map((zone) => html`<option value=${zone}></option>`)}</datalist>`, hint("timeZone"))}
    ${field("Name", text("scheduleName", { placeholder: "unique in its job" }), hint("scheduleName"))}
    ${policy("While the one before still runs", "overlapPolicy", OVERLAP, draft.overlapPolicy, set)}
    ${policy("Times that were missed", "catchUpPolicy", CATCH_UP, draft.catchUpPolicy, set)}
    ${hasClock ? html`${policy("A time that the clock jumps over", "dstGapPolicy", GAP, draft.dstGapPolicy, set)}${policy("A time that comes twice", "dstFoldPolicy", FOLD, draft.dstFoldPolicy, set)}` : nothing}
    ${field("Spread over, in seconds", text("jitterSeconds", { type: "number", min: 0 }), hint("jitterSeconds", "0: at the time itself. Always alike for one time."))}
    ${field("Calendar", text("calendarName", { placeholder: "none" }), hint("calendarName", "Only on its business days."))}
    ${field("Not before", text("startAt", { placeholder: "2027-01-01T00:00:00Z" }), hint("startAt"))}${field("Not after", text("endAt", { placeholder: "never" }), hint("endAt"))}
    ${field("Pause after failures in a row", text("pauseAfterFailures", { type: "number", min: 1 }), hint("pauseAfterFailures", "Empty: never."))}
    ${field("What it is for", text("description"), hint("description"))}</div>`;
}

const NUMBERS = ["jitterSeconds", "pauseAfterFailures"], TEXTS = ["kind", "expression", "timeZone", "scheduleName", "overlapPolicy", "dstGapPolicy", "dstFoldPolicy", "calendarName", "startAt", "endAt", "description"];
export const BLANK = { kind: "cron", expression: "", timeZone: "UTC", overlapPolicy: "skip", catchUpPolicy: "latest", dstGapPolicy: "fireAfterGap", dstFoldPolicy: "first", jitterSeconds: "0" };
export const draftOf = (schedule) => ({ ...Object.fromEntries([...TEXTS, ...NUMBERS].map((name) => [name, schedule[name] == null ? "" : String(schedule[name])])), catchUpPolicy: schedule.catchUp?.policy ?? "latest", scheduleName: schedule.scheduleName === schedule.scheduleId ? "" : schedule.scheduleName });

/** What a draft changes of a schedule, as the interface takes it. */
export function changesOf(draft, base) {
  const before = base ? draftOf(base) : BLANK, made = {};
  for (const name of TEXTS) if ((draft[name] ?? "") !== (before[name] ?? "")) made[name] = draft[name] || null;
  for (const name of NUMBERS) if ((draft[name] ?? "") !== (before[name] ?? "")) made[name] = draft[name] === "" ? null : Number(draft[name]);
  if (draft.catchUpPolicy !== before.catchUpPolicy) made.catchUp = { ...base?.catchUp, policy: draft.catchUpPolicy };
  return made;
}
