// Times: kept as milliseconds, shown in the zone that the reader chose, by the service's clock. No other file formats one.
const SKEW_MIN = 3_000;               // the service's `date` has whole seconds
let known = "", zone = "";
/** The browser's zone, and the reader's. The browser takes milliseconds for its first format: a page asks its questions first. */
const here = () => (known ||= Intl.DateTimeFormat().resolvedOptions().timeZone);
export const currentZone = () => (zone ||= readable(new URLSearchParams(location.search).get("tz") || localStorage.getItem("zone") || here()));
function readable(name) {
  try { if (name !== here()) new Intl.DateTimeFormat("en", { timeZone: name }); } catch { return here(); }
  return name;
}
let skew = 0;
const made = new Map();

/** Compares the browser's clock with the service's: `date` was written between `sent` and `came`. */
export function hear(date, sent, came) {
  if (!date) return;
  const difference = Date.parse(date) + 500 - (sent + came) / 2;
  skew = Math.abs(difference) < SKEW_MIN + (came - sent) / 2 ? 0 : Math.round(difference);
}

/** Now, by the service's clock. */
export const now = () => Date.now() + skew;
/** How far the service's clock is ahead of the browser's, if that is worth a word. */
export const clockSkew = () => skew;

export const zones = () => [...new Set([here(), "UTC", currentZone()])];
export function chooseZone(next) {
  zone = next;
  localStorage.setItem("zone", next);
}

function format(options, timeZone = currentZone()) {
  const key = timeZone + JSON.stringify(options);
  if (!made.has(key)) made.set(key, new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...options }));
  return made.get(key);
}

const DAY = { day: "numeric", month: "short" };
const MINUTE = { hour: "2-digit", minute: "2-digit" };
const SECOND = { ...MINUTE, second: "2-digit" };
export const clock = (at) => format(SECOND).format(at);
export const minute = (at) => format(MINUTE).format(at);
export const day = (at) => format({ weekday: "short", ...DAY }).format(at);
export const date = (at) => format({ ...DAY, year: "numeric" }).format(at);
/** `2026-11`: Nov 2026. */
export const monthOf = (text) => format({ month: "short", year: "numeric" }, "UTC").format(Date.parse(`${text}-15T00:00:00Z`));
/** A whole time, with its zone; in another zone than the reader's if one is given. */
export const full = (at, timeZone) => format({ weekday: "short", ...DAY, ...SECOND, timeZoneName: "short" }, timeZone).format(at);
/** The clock today, and the day with it on other days. */
export const when = (at) => (day(at) === day(now()) ? clock(at) : `${format(DAY).format(at)}, ${minute(at)}`);
export const ms = (text) => (text ? Date.parse(text) : null);
export const iso = (at) => new Date(at).toISOString();

export function span(value) {
  if (value == null) return "–";
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1000).toFixed(1)} s`;
  const s = Math.round(value / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(s % 60).padStart(2, "0")} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} m`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** How long until then, in whole seconds: it is read while it changes. */
export const countdown = (value) => (value < 60_000 ? `${Math.max(0, Math.ceil(value / 1000))} s` : span(value));

/** `in 3 m 04 s`, `2 h 01 m ago`: beside an absolute time, never instead of one. */
export const relative = (at) => (at > now() ? `in ${span(at - now())}` : `${span(now() - at)} ago`);

export const allZones = () => ["UTC", ...Intl.supportedValuesOf("timeZone")];
export const minuteIn = (at, timeZone) => format(MINUTE, timeZone).format(at);
export const dayIn = (at, timeZone) => format({ weekday: "long", ...DAY, year: "numeric" }, timeZone).format(at);
