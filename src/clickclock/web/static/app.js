// The shell: header, navigation, which page is shown, and the keys that work everywhere.
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { fault } from "./components/parts.js";
import { signOut } from "./core/api.js";
import { keep, kept } from "./core/keep.js";
import { liveState, onChange } from "./core/live.js";
import { learn, may } from "./core/permissions.js";
import { go, pathNow, routeOf } from "./core/router.js";
import { choose, step } from "./core/rows.js";
import { chooseZone, clockSkew, currentZone, span, zones } from "./core/time.js";
import { ROUTES } from "./routes.js";

const FRAME_MAX_MS = 250, GROUPS = ["Scheduler", "Attribution"], MORE = [...GROUPS, "Installation"];
const LIVE = { live: "Live", connecting: "Connecting", reconnecting: "Reconnecting" };
const THEMES = { auto: ["◐", "light"], light: ["○", "dark"], dark: ["●", "auto"] };
const MISSING = { title: () => "No such page", enter: () => {}, view: () => html`<div class="empty"><h1>No such page</h1>
  <p>The dashboard has nothing at <code>${location.pathname}</code>.</p><p><a href="/">To the overview</a></p></div>` };

const OWN_FAULT = { message: "This page has a fault of its own and cannot be shown. Nothing is lost: other pages work. Reload it; if it stays so, report it with the browser's console." };

/** @type {{ title: () => string, enter: (draw: () => void, values: object) => any, view: () => unknown } | null} */
let page = null;
let leave = () => {}, loadFault = null, broken = null, visit = 0, shown = 0, asked = 0, late = 0, prefix = false;
let theme = kept("theme", Object.keys(THEMES), "auto");

/** @param {{ path: string, word?: string }} route */
const leadsTo = ({ path, word }) => word && (path === pathNow() || (path !== "/" && pathNow().startsWith(`${path}/`)));
const isHere = (route) => route === ROUTES.filter(leadsTo).sort((a, b) => b.path.length - a.path.length)[0];
const link = (route) => html`<a href=${route.path} aria-current=${isHere(route) ? "page" : nothing}>${route.word}</a>`;
const inGroup = (group, more) => ROUTES.filter((route) => route.word && route.group === group && !!route.more === more && (!route.needs || may(route.needs)));

function navigation() {
  const more = MORE.flatMap((group) => inGroup(group, true));
  return html`<nav aria-label="Pages">${GROUPS.map((group) => html`<span class="nav-group" role="group" aria-label=${group}>${inGroup(group, false).map(link)}</span>`)}</nav>
    <details class="menu" @click=${(event) => event.target.closest("a") && (event.currentTarget.open = false)}><summary>More</summary>
      <div class="menu-body">${MORE.map((group) => (more.some((route) => route.group === group) ? html`<div><h3>${group}</h3>${inGroup(group, true).map(link)}</div>` : nothing))}
        <div><h3>Interface</h3><a href="/docs" target="_blank" rel="noopener">Every endpoint</a><a href="/openapi.json" target="_blank" rel="noopener">OpenAPI</a>
          ${kept("signed-in", ["yes"], "no") === "yes" ? html`<button class="button" @click=${leaveService}>Sign out</button>` : nothing}</div></div></details>`;
}

async function leaveService() {
  await signOut().catch(() => {});   // whoever is not known any more is signed out already
  keep("signed-in", "no");
  location.assign("/");
}

const notice = () => (clockSkew() ? html`<p class="banner clock-note" role="status">This browser's clock is ${span(Math.abs(clockSkew()))} ${clockSkew() > 0 ? "behind" : "ahead of"} the service's. Times here are by the service's clock.</p>` : nothing);

const shell = () => html`
  <header class="top">
    <a class="brand" href="/" aria-label="clickclock, overview"><img src=${new URL("icon.svg", import.meta.url).pathname} width="26" height="26" alt=""><span>clickclock</span></a>
    ${navigation()}
    <div class="tools">
      <span class="live ${liveState()}" role="status"><i></i><span>${LIVE[liveState()]}</span></span>
      <label class="zone"><span class="visually-hidden">Time zone</span><select @change=${(event) => { chooseZone(event.target.value); draw(); }}>
        ${zones().map((zone) => html`<option value=${zone} ?selected=${zone === currentZone()}>${zone}</option>`)}</select></label>
      <button class="icon-button" @click=${openSearch} aria-label="Go to …" title="Go to … (Ctrl K)">⌕</button>
      <button class="icon-button" @click=${nextTheme} aria-label="Theme: ${theme}" title="Theme: ${theme}">${THEMES[theme][0]}</button>
    </div>
  </header>
  ${notice()}
  <main id="main" tabindex="-1">${loadFault ?? broken ? html`<div class="page">${fault(loadFault ?? OWN_FAULT)}</div>` : page ? page.view() : html`<div class="page skeleton" aria-busy="true"></div>`}</main>
  <dialog class="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2><dl>
    ${ROUTES.filter(({ key }) => key).map(({ key, word }) => html`<div><dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${word}</dd></div>`)}
    <div><dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>go to anything by name</dd></div>
    <div><dt><kbd>/</kbd></dt><dd>find on this page</dd></div><div><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next and previous row</dd></div><div><dt><kbd>x</kbd></dt><dd>choose the row</dd></div><div><dt><kbd>Shift</kbd> <kbd>X</kbd></dt><dd>choose all up to it</dd></div><div><dt><kbd>[</kbd> <kbd>]</kbd></dt><dd>the attempt before and after</dd></div><div><dt><kbd>n</kbd> <kbd>N</kbd> <kbd>e</kbd></dt><dd>in an output: next hit, the one before, next error</dd></div>
    <div><dt><kbd>?</kbd></dt><dd>this map</dd></div></dl><form method="dialog"><button class="button">Close</button></form></dialog>`;

function nextTheme() {
  theme = THEMES[theme][1];
  keep("theme", theme);
  applyTheme();
  draw();
}
function applyTheme() {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Many changes in one frame are drawn once, and nothing is drawn for a hidden tab. Where a browser is too busy to give a
 * frame, a timer draws: a page must not stay empty because nothing moves on the screen. */
function draw() {
  if (asked) return;
  asked = requestAnimationFrame(paint);
  late = setTimeout(() => document.hidden || paint(), FRAME_MAX_MS);
}

function paint() {
  cancelAnimationFrame(asked);
  clearTimeout(late);
  asked = 0;
  const root = document.getElementById("app"), before = broken;
  broken = null;
  try {
    const title = page ? `${page.title()} · clickclock` : "clickclock";
    if (document.title !== title) document.title = title;
    render(shell(), root);
  } catch (error) {   // one fault in a page must not leave the reader with nothing; each drawing tries again
    if (`${before}` !== `${error}`) console.error(error);
    broken = error;
    render(shell(), root);
  }
  if (shown !== visit) {   // on a phone the navigation is wider than the screen
    shown = visit;
    document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

addEventListener("clickclock-unauthenticated", async () => {   // whatever asked: nothing is shown without a token
  if (!page || page.title() === "Sign in") return;
  leave();
  leave = () => {};
  page = await import("./pages/sign-in.js");
  page.enter(draw);
  draw();
});

async function show() {
  const mine = ++visit, found = routeOf(ROUTES, pathNow());
  leave();
  leave = () => {};
  let next = MISSING;
  loadFault = null;
  try { if (found) next = await found.route.load(); } catch {
    loadFault = { message: "This page could not be loaded. The service is away, or was updated: reload the page." };
  }
  if (mine !== visit) return;   // the reader has gone on meanwhile
  page = next;
  try { if (!loadFault) leave = page.enter(draw, found?.values ?? {}) ?? (() => {}); } catch (error) { console.error(error); loadFault = OWN_FAULT; }
  draw();
}

function visitLink(event) {
  const link = event.target.closest?.("a[href^='/']");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.download) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  show().then(() => { scrollTo(0, 0); document.getElementById("main").focus({ preventScroll: true }); });
}

const isTyping = (target) => target.matches?.("input, select, textarea, [contenteditable]");

const openSearch = async () => (await import("./components/palette.js")).openPalette(ROUTES);

function press(event) {
  if ((event.metaKey || event.ctrlKey) && event.key === "k") { event.preventDefault(); openSearch(); return; }
  if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
  if (prefix) {
    prefix = false;
    const route = ROUTES.find(({ key }) => key === event.key);
    if (route) { event.preventDefault(); go(route.path); return; }
  }
  const act = {
    g: () => { prefix = true; setTimeout(() => { prefix = false; }, 1500); },
    "/": () => /** @type {HTMLElement?} */ (document.querySelector("[data-find]"))?.focus(),
    j: () => step(1), k: () => step(-1), x: () => choose(false), X: () => choose(true),
    "?": () => /** @type {HTMLDialogElement} */ (document.querySelector("dialog.keys")).showModal(),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
}

document.addEventListener("click", visitLink);
document.addEventListener("keydown", press);
addEventListener("popstate", show);
onChange(({ state }) => state && draw());
applyTheme();
learn(draw);
show();
