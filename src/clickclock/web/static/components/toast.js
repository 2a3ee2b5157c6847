// What was done, said for eight seconds, with a way back where there is one.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";

const STAYS_MS = 8_000;
const element = document.body.appendChild(document.createElement("div"));
element.className = "toast";
element.setAttribute("role", "status");
let timer = 0;

const clear = () => render(nothing, element);

export function say(words, undo = null) {
  clearTimeout(timer);
  timer = setTimeout(clear, STAYS_MS);
  render(html`<p>${words}${undo ? html` <button class="button" @click=${() => { clear(); undo(); }}>Undo</button>` : nothing}</p>`, element);
}
