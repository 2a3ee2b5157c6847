// Holds what is on the screen of a log, asks the worker for it, and keeps the search and the chosen lines in the address.
import { choose } from "../core/address.js";

export const ROW = 20;
const BEFORE = 20, SCRIPT = new URL("../core/log-worker.js", import.meta.url).href;
export const WRAP_LINES_MAX = 2000;
const policy = globalThis.trustedTypes?.createPolicy("clickclock-worker", { createScriptURL: (url) => { if (url !== SCRIPT) throw new TypeError(url); return url; } });
export const box = () => document.querySelector(".scroll");

export class LogReader {
  count = 0; size = 0; done = false; fault = null; loud = new Uint32Array(); rows = []; top = 0;
  query = ""; hits = new Uint32Array(); hit = -1; isSearching = false; isBad = false; isFollowing = false; isWrapped = false; chosen = [0, -1];
  #asked = ""; #height = 600; #toSee = null; #draw; #worker; #watch;

  constructor(triggerId, attempt, draw) {
    this.#draw = draw;
    this.query = new URLSearchParams(location.search).get("q") ?? "";
    this.isSearching = !!this.query;
    const lines = /^#L(\d+)(?:-(\d+))?$/.exec(location.hash);
    if (lines) { this.chosen = [Number(lines[1]) - 1, Number(lines[2] ?? lines[1]) - 1]; this.#toSee = this.chosen[0]; }
    this.#worker = new Worker(policy ? policy.createScriptURL(SCRIPT) : SCRIPT, { type: "module" });
    this.#worker.onmessage = ({ data }) => { this.#hear(data); draw(); requestAnimationFrame(() => this.paint()); };
    this.#worker.postMessage({ open: triggerId, attempt });
    this.#watch = new ResizeObserver(() => { this.want(); this.paint(); });
  }

  close() { this.#worker.terminate(); this.#watch.disconnect(); }

  #hear(data) {
    if (data.lines) { this.rows = data.lines; this.#asked = ""; }
    if (data.count !== undefined) {
      Object.assign(this, { count: data.count, size: data.size, done: data.done, loud: data.loud });
      const at = this.#toSee;
      if (at != null && this.count > at) { this.#toSee = null; this.#afterDraw(() => this.see(at)); }
      if (this.isFollowing) this.#afterDraw(() => this.see(this.count - 1, true));
      if (data.done && this.query) this.look(this.query);
      this.#afterDraw(() => this.want());
    }
    if (data.hits) {
      Object.assign(this, { hits: data.hits, isSearching: !data.over, isBad: !!data.bad });
      if (data.over && this.hits.length && this.hit < 0 && this.chosen[1] < 0) this.go(0);
    }
    if (data.copied !== undefined) navigator.clipboard?.writeText(data.copied);
    if (data.fault) this.fault = data.fault;
  }

  #afterDraw(act) { requestAnimationFrame(() => requestAnimationFrame(act)); }

  /** Ask for what is on the screen, and a little around it. */
  want() {
    const scroll = box();
    if (!scroll) return;
    this.#watch.observe(scroll);
    this.#height = scroll.clientHeight;
    this.top = Math.floor(scroll.scrollTop / ROW);
    const all = this.isWrapped, from = all ? 0 : Math.max(0, this.top - BEFORE), to = all ? this.count : Math.min(this.count, this.top + Math.ceil(this.#height / ROW) + BEFORE);
    if (this.#asked === `${from}-${to}`) return;
    this.#asked = `${from}-${to}`;
    this.#worker.postMessage({ lines: [from, to] });
  }

  see(line, atEnd = false) {
    const scroll = box();
    if (!scroll) return;
    if (this.isWrapped) scroll.querySelector(`[data-at="${line}"]`)?.scrollIntoView({ block: "center" });
    else scroll.scrollTop = atEnd ? scroll.scrollHeight : Math.max(0, line * ROW - scroll.clientHeight / 3);
    this.want();
  }

  look(text) {
    Object.assign(this, { query: text, hit: -1, isSearching: true });
    choose({ q: text });
    this.#worker.postMessage({ find: text });
    this.#draw();
  }

  go(to) {
    if (!this.hits.length) return;
    this.hit = (to + this.hits.length) % this.hits.length;
    this.see(this.hits[this.hit]);
    this.#draw();
  }

  nextFault() {
    const here = this.chosen[1] >= 0 ? this.chosen[0] : this.top - 1, next = this.loud.find((line) => line > here) ?? this.loud[0];
    if (next !== undefined) this.choose(next);
  }

  /** Choose a line, or with `isRange` all up to it; the address says which, for whoever it is sent to. */
  choose(line, { isRange = false, stay = false } = {}) {
    this.chosen = isRange && this.chosen[1] >= 0 ? [Math.min(this.chosen[0], line), Math.max(this.chosen[0], line)] : [line, line];
    history.replaceState(null, "", `${location.search || location.pathname}#L${this.chosen[0] + 1}${this.chosen[1] > this.chosen[0] ? `-${this.chosen[1] + 1}` : ""}`);
    if (!stay) this.see(line);
    this.#draw();
  }

  follow() { this.isFollowing = !this.isFollowing; if (this.isFollowing) this.see(this.count - 1, true); this.#draw(); }
  wrap() { this.isWrapped = !this.isWrapped; this.#asked = ""; this.#afterDraw(() => this.want()); this.#draw(); }
  copy() { this.#worker.postMessage({ copy: [this.chosen[0], this.chosen[1] + 1] }); }
  scrolled() {
    const scroll = box();
    if (this.isFollowing && scroll.scrollTop < scroll.scrollHeight - scroll.clientHeight - 40) { this.isFollowing = false; this.#draw(); }
    this.want();
  }

  /** The map beside the scroll bar: where faults and hits are. */
  paint() {
    const map = /** @type {HTMLCanvasElement?} */ (document.querySelector(".map"));
    if (!map || !this.count) return;
    const style = getComputedStyle(map), ratio = devicePixelRatio, width = (map.width = 18 * ratio), height = (map.height = map.clientHeight * ratio), pen = map.getContext("2d");
    const many = new Uint16Array(height), y = (line) => Math.min(height - 1, Math.floor((line / this.count) * height));
    for (const line of this.loud) many[y(line)] += 1;
    pen.fillStyle = style.color;
    many.forEach((each, at) => { if (each) { pen.globalAlpha = Math.min(1, 0.35 + each / 6); pen.fillRect(2 * ratio, at, width * 0.4, Math.max(1, ratio)); } });
    pen.globalAlpha = 1;
    pen.fillStyle = style.outlineColor;
    for (const line of this.hits) pen.fillRect(width * 0.55, y(line), width * 0.4, Math.max(1, ratio));
  }

  /** The keys of a log; returns whether this was one. */
  press(key) {
    const act = { n: () => this.go(this.hit + 1), N: () => this.go(this.hit - 1), e: () => this.nextFault(), G: () => this.see(this.count - 1, true), f: () => this.follow(), w: () => this.canWrap && this.wrap(), l: () => document.getElementById("line")?.focus() }[key];
    act?.();
    return !!act;
  }

  get canWrap() { return this.count <= WRAP_LINES_MAX; }
}
