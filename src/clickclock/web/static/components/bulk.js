// One action for all runs that match a filter: counted first, then done a hundred at a time, with an answer for each.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { to } from "../core/address.js";
import { change } from "../core/api.js";
import { badge, glyph, isOver } from "../core/states.js";
import { field, openDialog, STAY } from "./dialog.js";
import { counted, number } from "./parts.js";

const WORDS = { cancel: "Cancel them", runAgain: "Run them again" }, DONE = { cancel: "cancelled", runAgain: "runs again" }, SHOWN = 500;
/**
 * A filter of the list of runs, as the interface takes it for a bulk.
 * @param {Record<string, any>} filters
 */
export const filterOf = ({ state, ignored, ...rest }) => ({ ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value)), ...(state ? { states: state.split(",") } : {}) });
const total = (states) => Object.values(states).reduce((sum, each) => sum + each, 0);
/** The filter, of those states alone that take an action; null if it names none of them. */
function narrow(filter, action) {
  const states = filter.states?.filter((state) => takes(action, state));
  return states?.length === 0 ? null : states ? { ...filter, states } : filter;
}
const takes = (action, state) => (action === "cancel" ? !isOver(state) : isOver(state) && state !== "skipped");

/** Count what matches, and offer what can be done with it. */
export async function actOnAll(filter, done) {
  const narrowed = Object.fromEntries(Object.keys(WORDS).map((action) => [action, narrow(filter, action)]));
  const found = await Promise.all(Object.entries(narrowed).filter(([, each]) => each).map(async ([action, each]) => [action, (await change("POST", "bulk", { action, filter: each, dryRun: true })).dryRun]));
  const counts = Object.assign({}, ...found.map(([, { states }]) => states)), actions = found.map(([action, { states }]) => [action, total(states)]).filter(([, many]) => many);
  let progress = null, answers = [], did = null;
  const isOffered = () => actions.length && !progress;
  const answer = (each) => html`<li>${glyph(each.done ? "succeeded" : "failed", each.done ? "done" : "refused")} <a class="inline" href=${to("/runs", each.triggerId)}>${each.triggerId}</a> ${each.done ? DONE[did] : each.message}${each.newTriggerId ? html` as <a class="inline" href=${to("/runs", each.newTriggerId)}>${each.newTriggerId}</a>` : nothing}</li>`;
  const draw = openDialog({
    title: "All that match", button: () => (progress ? "" : actions.length ? "Do it" : "Nothing to do"), tone: "danger",
    body: () => html`${progress ? nothing : html`<ul class="counts">${Object.entries(counts).map(([state, many]) => html`<li>${badge(state)} ${number(many)}</li>`)}</ul>`}
      ${progress || found.every(([, { isComplete }]) => isComplete) ? nothing : html`<p class="hint">There are more; counting ended.</p>`}
      ${isOffered() ? html`<fieldset class="choices"><legend>What to do</legend>${actions.map(([action, many], at) => html`<label class="check"><input type="radio" name="action" value=${action} ?checked=${at === 0}> ${WORDS[action]} (${number(many)})</label>`)}</fieldset>
        ${field("Why", html`<input name="reason" maxlength="4096" required placeholder="for whoever looks later">`)}` : progress ? nothing : html`<p>None of them can be cancelled or run again.</p>`}
      ${progress ? html`<p role="status">${number(progress.done)} done${progress.isOver ? "" : " …"}, ${number(progress.refused)} refused</p>
        <ul class="under answers" tabindex="0" aria-label="The answer for each">${repeat(answers.slice(0, SHOWN), (each) => each.triggerId, answer)}</ul>
        ${answers.length > SHOWN ? html`<p class="hint">And ${counted(answers.length - SHOWN, "more answer")}; what was refused stands first.</p>` : nothing}` : nothing}`,
    act: async (values) => {
      const action = values.get("action");
      if (!action) return undefined;
      did = action;
      for (let cursor = null, bulkId = null, isFirst = true; isFirst || cursor; isFirst = false) {
        const answer = await change("POST", "bulk", { action, filter: narrowed[action], cursor, bulkId, reason: values.get("reason") });
        const bad = answer.items.filter((each) => !each.done);
        answers = [...answers, ...answer.items].sort((a, b) => a.done - b.done);
        const before = progress ?? { done: 0, refused: 0 };   // nothing came before the first answer: it may be tried again
        progress = { done: before.done + answer.items.length - bad.length, refused: before.refused + bad.length, isOver: !answer.nextCursor };
        [cursor, bulkId] = [answer.nextCursor, answer.bulkId];
        draw();
      }
      done();
      return STAY;
    },
  });
}
