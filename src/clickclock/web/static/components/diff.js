// Two texts line by line: what goes, what comes. The longest common run of lines stays.
import { html } from "../vendor/lit-html/lit-html.js";

const LINES_MAX = 1000;   // of each; beyond that the table of the comparison would hold up the page

/** `[["same" | "gone" | "come", line]]`. */
export function differences(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  if (a.length > LINES_MAX || b.length > LINES_MAX) return before === after ? a.map((each) => ["same", each]) : [...a.map((each) => ["gone", each]), ...b.map((each) => ["come", each])];
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const made = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) { made.push(["same", a[i]]); i += 1; j += 1; }
    else if (j >= b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1])) made.push(["gone", a[i++]]);
    else made.push(["come", b[j++]]);
  }
  return made;
}

const SIGNS = { same: " ", gone: "−", come: "+" };
export const diff = (before, after) => html`<pre class="diff" tabindex="0" aria-label="Differences">${differences(before, after).map(([kind, line]) => html`<span class=${kind}>${SIGNS[kind]} ${line}
</span>`)}</pre>`;
