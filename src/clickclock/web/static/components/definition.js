// A definition as JSON: shown, edited with a diff before it is saved, and never written over somebody else's change.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { ask, change } from "../core/api.js";
import { diff } from "./diff.js";
import { field, openDialog } from "./dialog.js";
import { say } from "./toast.js";

const MADE_BY_SERVICE = ["version", "createdAt", "updatedAt", "nextFireAt", "lastFireAt", "updatedBy", "etag"];
const isPlain = (value) => value == null || (typeof value === "object" && !Object.keys(value).length);
/** What people wrote of a definition: without what the service sets, and without what says nothing. */
export const written = (of) => Object.fromEntries(Object.entries(of).filter(([name, value]) => !MADE_BY_SERVICE.includes(name) && !isPlain(value)));
export const asText = (of) => JSON.stringify(written(of), null, 2);

export const definition = (of) => html`<pre class="definition" tabindex="0" aria-label="Definition"><code>${asText(of)}</code></pre>`;

/** `name` is the resource, `query` finds it, `pick(answer)` takes it out of the answer. */
export async function editDefinition({ title, name, query, pick, done }) {
  let answer = await ask(name, query), base = asText(pick(answer)), theirs = null, etag = answer.etag;
  openDialog({
    title, button: "Save",
    body: (form) => {
      const text = form?.elements.text?.value ?? base;
      return html`${theirs ? html`<div class="banner" role="alert"><p>Somebody changed it meanwhile. Nothing of theirs was overwritten. ${theirs.by ? html`It was <b>${theirs.by}</b>. ` : nothing}This is what they changed:</p>${diff(theirs.before, theirs.after)}<p>Put it into your text where you want to keep it. Saving again replaces their version.</p></div>` : nothing}
        ${field("Definition, as JSON", html`<textarea name="text" required spellcheck="false" .defaultValue=${base}></textarea>`, "A field that is left out has its default.")}
        ${text !== base ? html`<p class="under">What will change:</p>${diff(base, text)}` : html`<p class="under">Nothing is changed yet.</p>`}`;
    },
    act: async (values) => {
      let body;
      try { body = JSON.parse(values.get("text")); } catch (error) { throw new Error(`This is no JSON: ${error.message}.`, { cause: error }); }
      try { await change("PUT", name, body, { etag }); } catch (error) {
        if (error.code === "staleVersion") {
          answer = await ask(name, query);
          theirs = { before: base, after: asText(pick(answer)), by: pick(answer).updatedBy };
          [base, etag] = [theirs.after, answer.etag];
        }
        throw error;
      }
      say("Saved.");
      done?.();
    },
  });
}
