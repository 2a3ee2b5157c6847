// One dialog at a time, drawn beside the page so that a page that draws itself anew does not disturb what is typed.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { fault } from "./parts.js";

const element = document.body.appendChild(document.createElement("dialog"));
element.setAttribute("aria-labelledby", "dialog-title");
let next = null;
element.addEventListener("close", () => { const then = next; next = null; render(nothing, element); then?.(); });

/** Open a dialog. `body(form)` is its content; `act(values)` does it and may refuse, which is shown.
 * What it returns, if that is a function, is called when the dialog is closed: to open another one; STAY keeps it open.
 * `button` is its word, or a function of it; without a word there is no button. */
export const STAY = Symbol("the dialog stays open");
export function openDialog({ title, body, button, tone = "primary", act }) {
  let wrong = null, isBusy = false;
  const word = () => (typeof button === "function" ? button() : button);
  const draw = () => render(html`<form @submit=${submit} @input=${() => draw()}>
    <h2 id="dialog-title">${title}</h2>${body(element.querySelector("form"))}${wrong ? fault(wrong) : nothing}
    <div class="dialog-buttons"><button type="button" class="button" @click=${() => element.close()}>Close</button>
      ${word() ? html`<button class="button ${tone}" ?disabled=${isBusy}>${word()}</button>` : nothing}</div></form>`, element);
  async function submit(event) {
    event.preventDefault();
    const values = new FormData(event.target);
    isBusy = true; wrong = null; draw();
    try {
      const then = await act(values);
      if (typeof then === "function") next = then;
      if (then !== STAY) element.close();
    } catch (error) { wrong = error; }
    isBusy = false;
    if (element.open) draw();
  }
  render(nothing, element);
  draw();
  element.showModal();
  return draw;
}

/** A labelled field of a form. */
export const field = (label, input, hint = nothing) => html`<label class="field"><span>${label}</span>${input}${hint === nothing ? nothing : html`<span class="hint">${hint}</span>`}</label>`;
