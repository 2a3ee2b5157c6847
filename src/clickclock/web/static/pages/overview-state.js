// What the overview knows: it asks once, and then takes each change as it comes.
import { ask } from "../core/api.js";
import { AHEAD, PAST } from "../components/lanes.js";
import { jobOf } from "../components/parts.js";
import { isOver } from "../core/states.js";
import { iso, ms } from "../core/time.js";

const DAY = 86_400_000, CELLS = 60, SCHEDULES_MAX = 16, LISTED_MAX = 50, LANES = 40, MARKS_MAX = 5000;

/** Columns of triggers → one object each. */
const fromMarks = (marks) => marks.triggerIds.map((triggerId, at) => ({
  triggerId, ...marks.jobs[marks.jobIndexes[at]], state: marks.states[marks.stateIndexes[at]], lagMs: marks.lagsMs[at],
  dueTime: iso(marks.dueTimesMs[at]), startedAt: marks.startsMs[at] && iso(marks.startsMs[at]), finishedAt: marks.endsMs[at] && iso(marks.endsMs[at]),
}));

export class Overview {
  triggers = new Map();   // id → trigger: of the last half hour, and whatever runs
  planned = new Map();    // schedule id → { schedule, times }
  strips = new Map();     // schedule id → { schedule, triggers }: its last nominal times
  usual = new Map();      // job → what it usually takes, in ms
  schedules = []; alarms = []; findings = []; totals = {}; stat = null;
  fault = null; isReady = false; hasMore = false; loads = 0;

  /** Ask all that does not wait for another answer at once, and `draw`; then what became of the times. */
  async load(now, draw, room) {
    try {
      const [{ cluster }, { schedules }, { triggerMarks }, live, { jobStat }, { alarms }, { forecast }] = await Promise.all([
        ask("cluster"), ask("schedules", { limit: LISTED_MAX }), ask("triggerMarks", { from: iso(now - PAST - 5 * 60_000), limit: MARKS_MAX }),
        ask("jobTrigger", { state: "queued,starting,running", limit: 200 }),
        ask("jobStat", { bucket: "hour", from: iso(now - DAY), rank: "slowest", limit: 50 }), ask("alarm", { isOpen: true }), ask("forecast", { from: iso(now), to: iso(now + AHEAD), lanes: LANES }),
      ]);
      Object.assign(this, { schedules, alarms, stat: jobStat, totals: cluster.totals, findings: cluster.findings });
      for (const each of [...fromMarks(triggerMarks), ...live.triggers]) this.triggers.set(each.triggerId, each);
      for (const each of jobStat.jobs ?? []) this.usual.set(jobOf(each), each.durationMs.p50);
      for (const [id, each] of this.triggers) if (isOver(each.state) && ms(each.finishedAt ?? each.dueTime) < now - PAST - 60_000) this.triggers.delete(id);
      this.hasMore = forecast.hasMore;
      this.planned = new Map(forecast.lanes.map((lane) => [lane.scheduleId, { schedule: { ...lane, paused: !!lane.skipReason }, times: lane.timesMs }]));
      Object.assign(this, { isReady: true, fault: null, loads: this.loads + 1 });
      draw();
      await this.#look(room);
    } catch (error) { this.fault = error; }
    this.loads += 1;
    draw();
  }

  /** One question for all schedules: what became of their last times. Those that come first stand first. */
  async #look(room) {
    const known = new Map([...this.planned].map(([id, { schedule }]) => [id, schedule]));
    for (const each of this.schedules) if (!known.has(each.scheduleId)) known.set(each.scheduleId, each);
    const shown = [...known.keys()].slice(0, SCHEDULES_MAX);
    const { schedules } = shown.length ? await ask("scheduleTimes", { scheduleId: shown.join(","), limit: Math.min(CELLS, room) }) : { schedules: [] };
    this.strips = new Map(schedules.map(({ scheduleId, times }) => [scheduleId, { schedule: known.get(scheduleId), triggers: times.map((each) => ({ ...each, scheduleId })).reverse() }]));
  }

  /** Whether the examples are here, which the first steps are about; and whether somebody has run the one that they name. */
  get isExample() { return this.schedules.some((each) => each.application === "examples"); }
  get hasRun() { return [...this.triggers.values()].some((each) => each.application === "examples" && each.jobName === "countdown"); }

  /** The next time of all, with its schedule. */
  next = (now) => [...this.planned.values()].flatMap(({ schedule, times }) => times.filter((at) => at > now).slice(0, 1).map((at) => ({ at, of: schedule }))).sort((a, b) => a.at - b.at)[0];

  /** Take one change of the stream; returns whether there is something new to draw. */
  take({ type, data, time }) {
    if (!type.startsWith("clickclock.trigger.")) return false;
    const before = this.triggers.get(data.triggerId);
    const each = { ...before, ...data, dueTime: data.dueTime ?? before?.dueTime ?? data.nominalTime ?? time };
    this.triggers.set(data.triggerId, each);
    const strip = this.strips.get(data.scheduleId);
    if (strip && (data.state === "starting" || isOver(data.state))) {
      const at = strip.triggers.findIndex((other) => other.triggerId === data.triggerId);
      strip.triggers = at >= 0 ? strip.triggers.with(at, each) : [...strip.triggers, each].slice(-CELLS);
    }
    return true;
  }
}
