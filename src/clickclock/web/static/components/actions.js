// What a reader can do to a run, a job or a schedule: a dialog that says what will happen, then one call of the interface.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { to } from "../core/address.js";
import { change } from "../core/api.js";
import { go } from "../core/router.js";
import { field, openDialog } from "./dialog.js";
import { jobName, jobOf } from "./parts.js";
import { say } from "./toast.js";

/** Run a job, with a form made of its declared parameters. `given` are values to begin with: those of an earlier run. */
export function runJob(job, { given = {}, title = "Run now" } = {}) {
  const names = Object.keys(job.parameters ?? {});
  openDialog({
    title, button: "Run",
    body: () => html`<p class="under clip" tabindex="0">${jobName(job)}: <code>${job.command}</code></p>
      ${names.map((name) => { const fallback = job.parameters[name]; return field(name, html`<input name="p:${name}" value=${given[name] ?? fallback ?? ""} ?required=${fallback == null} spellcheck="false">`, fallback == null ? "must be given" : `otherwise ${fallback === "" ? "empty" : fallback}`); })}
      ${field("Why", html`<input name="reason" maxlength="4096" placeholder="for whoever looks later">`)}
      ${field("Priority", html`<input name="priority" type="number" min="0" max="100" placeholder=${job.priority ?? 50}>`, "Higher starts first.")}
      <label class="check"><input type="checkbox" name="dependents" checked> Jobs that depend on it run after it</label>`,
    act: async (values) => {
      const changed = names.filter((name) => values.get(`p:${name}`) !== (job.parameters[name] ?? "") || job.parameters[name] == null);
      const { trigger } = await change("POST", "jobTrigger", {
        application: job.application, jobName: job.jobName, parameters: Object.fromEntries(changed.map((name) => [name, values.get(`p:${name}`)])),
        reason: values.get("reason") || null, priority: values.get("priority") ? Number(values.get("priority")) : null, dependents: values.has("dependents"), idempotencyKey: crypto.randomUUID?.() ?? null,
      });
      go(to("/runs", trigger.triggerId));
      say(`${jobOf(job)} is on its way.`);
    },
  });
}

export function cancelRun(trigger, done) {
  const isQueued = trigger.state === "queued";
  openDialog({
    title: "Cancel this run?", button: "Cancel the run", tone: "danger",
    body: () => html`<p>${jobName(trigger)} ${isQueued ? "has not started, and will not." : "gets SIGTERM, and SIGKILL after its grace period. What it did so far stays done."}</p>`,
    act: async () => { await change("DELETE", "jobTrigger", undefined, { query: { triggerId: trigger.triggerId } }); say("It is being cancelled."); done?.(); },
  });
}

/** Pause or resume, at once, with a way back. A pause asks why. */
export function pauseSchedule(schedule, done) {
  const set = async (body) => { await change("PUT", "schedules", { scheduleId: schedule.scheduleId, ...body }); await done?.(); };
  if (schedule.paused) {
    set({ paused: false, pauseReason: null }).then(() => say(`${jobOf(schedule)} runs again at its next time. What was due meanwhile was skipped.`, () => set({ paused: true, pauseReason: schedule.pauseReason })), (error) => say(error.message));
    return;
  }
  openDialog({
    title: "Pause the schedule", button: "Pause",
    body: () => html`<p>${jobName(schedule)} starts no more until somebody resumes it. Times that come meanwhile are skipped, and say why.</p>${field("Why", html`<input name="reason" maxlength="4096" required>`)}`,
    act: async (values) => { await set({ paused: true, pauseReason: values.get("reason") }); say(`${jobOf(schedule)} is paused.`, () => set({ paused: false, pauseReason: null })); },
  });
}

export function acknowledge(alarm, done) {
  openDialog({
    title: "Acknowledge the alarm", button: "Acknowledge",
    body: () => html`<p>${jobName(alarm)}: ${alarm.message}</p><p class="under">It stays open until it is over by itself. Nobody is notified of it any more.</p>
      ${field("Your name", html`<input name="who" maxlength="128" required autocomplete="name">`)}${field("Note", html`<input name="note" maxlength="4096">`)}`,
    act: async (values) => { await change("PUT", "alarm", { alarmId: alarm.alarmId, acknowledgedBy: values.get("who"), note: values.get("note") || null }); say("Acknowledged."); done?.(); },
  });
}

const SPANS = [[3600, "1 hour"], [14_400, "4 hours"], [86_400, "1 day"], [604_800, "7 days"]];
export function silence(of, done) {
  openDialog({
    title: "Silence alarms", button: "Silence",
    body: () => html`<p>Alarms of ${jobName(of)} open all the same, but nobody is notified. One that is still open when the silence ends is notified then.</p>
      ${field("For", html`<select name="seconds">${SPANS.map(([seconds, word]) => html`<option value=${seconds}>${word}</option>`)}</select>`)}
      ${field("Your name", html`<input name="who" maxlength="128" required autocomplete="name">`)}${field("Why", html`<input name="note" maxlength="4096">`)}`,
    act: async (values) => {
      await change("PUT", "silence", { application: of.application, jobName: of.jobName, seconds: Number(values.get("seconds")), silencedBy: values.get("who"), note: values.get("note") || null });
      say("Silenced.");
      done?.();
    },
  });
}

/** Delete something for good: the name has to be typed. */
export function remove({ title, name, words, act, button = "Delete" }) {
  openDialog({
    title, button, tone: "danger",
    body: (form) => html`<p>${words}</p>${field(html`Type <b>${name}</b>`, html`<input name="typed" required autocomplete="off" spellcheck="false">`)}${form && new FormData(form).get("typed") && new FormData(form).get("typed") !== name ? html`<p class="hint">Not yet the same.</p>` : nothing}`,
    act: async (values) => { if (values.get("typed") !== name) throw new Error(`Type ${name} to go on.`); await act(); },
  });
}
