// What the overview knows: it asks, and then takes each change as it comes. Each question stands alone.
import { ask } from "../core/api.js";
import { AHEAD, PAST } from "../components/lanes.js";
import { jobOf } from "../components/parts.js";
import { isOver } from "../core/states.js";
import { iso, ms } from "../core/time.js";

const DAY = 86_400_000, CELLS = 60, SCHEDULES_MAX = 16, LISTED_MAX = 50, LANES = 40, MARKS_MAX = 5000, LIVE_MAX = 200, PATIENCE_MS = 1500, QUESTIONS = 8;

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
  isReady = false; hasMore = false; loads = 0;
  faults = new Map();     // question → why it has no answer; the last answer that it had stays
  answered = new Set();   // questions that had an answer
  #heard = []; #stop = new AbortController();

  /** Ask everything at once, take each answer as it comes, and `draw`. What fails or hangs leaves the other parts as they are.
   * The first view waits a moment for all of them, so that nothing jumps. */
  async load(now, draw, room) {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop, heard = (this.#heard = []);
    const look = async (name, question, take) => {
      try {
        const answer = await question;
        if (signal.aborted) return;
        take(answer);
        heard.forEach((change) => this.#apply(change));   // they came while the service answered: they are newer
        this.answered.add(name);
        this.faults.delete(name);
      } catch (error) {
        if (signal.aborted) return;
        this.faults.set(name, error);
      }
      this.loads += 1;
      if (this.isReady) draw();
    };
    const show = () => { if (!signal.aborted && !this.isReady) { this.isReady = true; draw(); } };
    const patience = setTimeout(show, PATIENCE_MS), put = (name, query) => ask(name, query, signal);
    const schedules = put("schedules", { limit: LISTED_MAX }), forecast = put("forecast", { from: iso(now), to: iso(now + AHEAD), lanes: LANES });
    await Promise.all([
      look("cluster", put("cluster"), ({ cluster }) => Object.assign(this, { totals: cluster.totals, findings: cluster.findings })),
      look("alarm", put("alarm", { isOpen: true }), ({ alarms }) => { this.alarms = alarms; }),
      look("jobStat", put("jobStat", { bucket: "hour", from: iso(now - DAY), rank: "slowest", limit: 50 }), ({ jobStat }) => {
        this.stat = jobStat;
        for (const each of jobStat.jobs ?? []) this.usual.set(jobOf(each), each.durationMs.p50);
      }),
      look("triggerMarks", put("triggerMarks", { from: iso(now - PAST - 5 * 60_000), limit: MARKS_MAX }), ({ triggerMarks }) => {
        for (const each of fromMarks(triggerMarks)) this.triggers.set(each.triggerId, each);
        for (const [id, each] of this.triggers) if (isOver(each.state) && ms(each.finishedAt ?? each.dueTime) < now - PAST - 60_000) this.triggers.delete(id);
      }),
      look("jobTrigger", put("jobTrigger", { state: "queued,starting,running", limit: LIVE_MAX }), ({ triggers }) => {
        const live = new Set(triggers.map((each) => each.triggerId));
        for (const each of triggers) this.triggers.set(each.triggerId, each);
        if (triggers.length < LIVE_MAX) for (const [id, each] of this.triggers) if (!isOver(each.state) && !live.has(id)) this.triggers.delete(id);   // it ended unheard
      }),
      look("schedules", schedules, (answer) => { this.schedules = answer.schedules; }),
      look("forecast", forecast, (answer) => {
        this.hasMore = answer.forecast.hasMore;
        this.planned = new Map(answer.forecast.lanes.map((lane) => [lane.scheduleId, { schedule: { ...lane, paused: !!lane.skipReason }, times: lane.timesMs }]));
      }),
      look("scheduleTimes", Promise.any([schedules, forecast]).then(() => Promise.allSettled([schedules, forecast])).then(() => this.#times(room, put), ({ errors }) => { throw errors?.[0]; }), (strips) => { this.strips = strips; }),
    ]);
    clearTimeout(patience);
    show();
  }

  /** One question for all schedules: what became of their last times. Those that come first stand first. */
  async #times(room, put) {
    const known = new Map([...this.planned].map(([id, { schedule }]) => [id, schedule]));
    for (const each of this.schedules) if (!known.has(each.scheduleId)) known.set(each.scheduleId, each);
    const shown = [...known.keys()].slice(0, SCHEDULES_MAX);
    const { schedules } = shown.length ? await put("scheduleTimes", { scheduleId: shown.join(","), limit: Math.min(CELLS, room) }) : { schedules: [] };
    return new Map(schedules.map(({ scheduleId, times }) => [scheduleId, { schedule: known.get(scheduleId), triggers: times.map((each) => ({ ...each, scheduleId })).reverse() }]));
  }

  /** Why nothing at all is known, if it is so. */
  get fault() { return this.isReady && !this.answered.size ? [...this.faults.values()][0] ?? null : null; }
  /** Why the whole service seems to be away, if it does: no question has an answer any more. */
  get isAway() { return this.faults.size === QUESTIONS ? [...this.faults.values()][0] : null; }

  /** Whether the examples are here, which the first steps are about; and whether somebody has run the one that they name. */
  get isExample() { return this.schedules.some((each) => each.application === "examples"); }
  get hasRun() { return [...this.triggers.values()].some((each) => each.application === "examples" && each.jobName === "countdown"); }

  /** The next time of all, with its schedule. */
  next = (now) => [...this.planned.values()].flatMap(({ schedule, times }) => times.filter((at) => at > now).slice(0, 1).map((at) => ({ at, of: schedule }))).sort((a, b) => a.at - b.at)[0];

  /** Take one change of the stream; returns whether there is something new to draw. */
  take(change) {
    if (!change.type.startsWith("clickclock.trigger.")) return false;
    this.#heard.push(change);
    this.#apply(change);
    return true;
  }

  #apply({ data, time }) {
    const before = this.triggers.get(data.triggerId);
    const each = { ...before, ...data, dueTime: data.dueTime ?? before?.dueTime ?? data.nominalTime ?? time };
    this.triggers.set(data.triggerId, each);
    const strip = this.strips.get(data.scheduleId);
    if (strip && (data.state === "starting" || isOver(data.state))) {
      const at = strip.triggers.findIndex((other) => other.triggerId === data.triggerId);
      strip.triggers = at >= 0 ? strip.triggers.with(at, each) : [...strip.triggers, each].slice(-CELLS);
    }
  }
}
