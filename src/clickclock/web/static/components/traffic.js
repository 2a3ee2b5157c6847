// What came, minute by minute, and how much of it earned credit: columns, and bars that become shorter step by step.
import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { counted, number, percent } from "./parts.js";
import { gauge } from "./credit.js";
import { full, minute, span, when } from "../core/time.js";

const HEIGHT = 100, SERIES = [["clicks", "c-clicks"], ["rejections", "c-rejections"], ["orders", "c-orders"]];

/** Columns of a funnel's buckets: clicks, what was refused, and orders. The last bucket is not over yet. */
export function columns({ clicks, rejections, orders, firstMs, widthMs }) {
  const sums = clicks.map((each, i) => each + rejections[i] + orders[i]), top = Math.max(1, ...sums), at = (i) => firstMs + i * widthMs;
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * (clicks.length - 1)));
  const many = { clicks, rejections, orders };
  return html`<figure class="chart tall-chart"><svg viewBox="0 0 ${clicks.length} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Clicks, rejections and orders in ${clicks.length} steps of ${span(widthMs)}, at most ${number(top)} in one">
      ${clicks.map((_, i) => {
    let y = HEIGHT;
    return svg`<g><title>${full(at(i))}: ${counted(clicks[i], "click")}, ${number(rejections[i])} rejected, ${counted(orders[i], "order")}</title><rect class="hover" x=${i} width="1" y="0" height=${HEIGHT} />${SERIES.map(([name, tone]) => {
      const height = (many[name][i] / top) * HEIGHT;
      y -= height;
      return height ? svg`<rect class=${tone} x=${i + 0.1} width="0.8" y=${y} height=${height} />` : nothing;
    })}</g>`;
  })}</svg>
    <div class="chart-axis" aria-hidden="true">${[...new Set(marks)].map((i) => html`<span>${widthMs < 3_600_000 ? minute(at(i)) : when(at(i))}</span>`)}</div></figure>`;
}
export const columnsKey = () => html`<span class="key"><i class="k-clicks"></i>clicks <i class="k-rejections"></i>rejected <i class="k-orders"></i>orders</span>`;

const step = ([word, count, of, under]) => html`<li><span>${word}</span>${count == null ? html`<span class="faint">not known yet</span>` : html`${gauge(of ? count / of : 0)}<b class="num">${number(count)}</b><span class="num faint">${of ? percent(count / of) : "–"}</span>`}${under ? html`<span class="under whole">${under}</span>` : nothing}</li>`;

/** Each step of a funnel, as a share of what was received. */
export function funnel(told) {
  const { received, accepted, inLake, inJourneys, credited } = told, waiting = accepted - inLake, views = told.views.reduce((sum, each) => sum + each, 0);
  return html`<ol class="funnel">${[
    ["Received", received, received, views ? `clicks; beside them ${counted(views, "view")}` : null],
    ["Accepted", accepted, received, "answered 204, and on disk"],
    ["In the lake", inLake, received, waiting ? `${counted(waiting, "click")} will be there within a minute` : null],
    ["In journeys", inJourneys, received, inJourneys == null ? "there is no result yet: run attribution" : "before an order that was placed lately"],
    ["Credited", credited, received, credited == null ? null : `a part of an order by the model “${told.model}”`],
  ].map(step)}</ol>`;
}

/** Why clicks were refused; a click may have several reasons. */
export const reasons = (told) => (told.rejected ? html`<p class="under pad">${counted(told.rejected, "click was", "clicks were")} refused. A click may have several reasons.</p><ol class="counts-list pad">${told.reasons.map(({ code, clicks }) => html`<li><code>${code}</code>${gauge(clicks / told.rejected)}<span class="num">${number(clicks)}</span><span class="num faint">${percent(clicks / told.rejected)}</span></li>`)}</ol>`
  : html`<p class="note">No click was refused.</p>`);
