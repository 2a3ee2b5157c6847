// One stream of changes for all tabs of this browser. HTTP/1.1 lets a browser open six connections to a service: with a
// stream in each tab, the seventh tab would hang without a word. One tab holds a lock and listens; it passes changes on.
// Each change has an id. Whoever listens next goes on after the last one, so no tab misses any.
// Browsers have locks over HTTPS and on loopback alone: without them, each tab listens for itself and passes nothing on.
const WAIT_MIN = 500, WAIT_MAX = 15_000, TOGETHER_MS = 200, SETTLE_MS = 400;
const channel = navigator.locks ? new BroadcastChannel("clickclock-live") : null;
const listeners = new Set();
let state = "connecting", last = "";

export const liveState = () => state;

/** Hear of each change (`change`), of a gap after which all is to be read anew (`missed`), and of the stream's `state`. */
export function onChange(hear) {
  listeners.add(hear);
  return () => listeners.delete(hear);
}

/** Call `load` soon after a gap, and after changes that `concerns` takes: once for all that come together. Returns how to stop it. */
export function reloadOn(concerns, load) {
  let timer = 0;
  const off = onChange(({ change, missed }) => {
    if (missed || (change && concerns(change))) timer ||= setTimeout(() => { timer = 0; load(); }, SETTLE_MS);
  });
  return () => { off(); clearTimeout(timer); };
}

/** What `question` answers, and the changes that came while it was on its way: each may be newer than the answer. */
export async function withChanges(question) {
  const heard = [], off = onChange(({ change }) => change && heard.push(change));
  try { return [await question, heard]; } finally { off(); }
}

function pass(message) {
  if (message.state) state = message.state;
  if (message.id) last = message.id;
  for (const hear of listeners) hear(message);
}

/** Tell this tab and all others. Changes go together, five times a second at most: each costs a page a drawing. */
function both(...messages) {
  for (const message of messages) pass(message);
  channel?.postMessage(messages);
}

const waiting = [];
let timer = 0;
function gather(message) {
  waiting.push(message);
  timer ||= setTimeout(() => { timer = 0; both(...waiting.splice(0)); }, TOGETHER_MS);
}

if (channel) {
  channel.onmessage = ({ data }) => (data.hello ? channel.postMessage([{ state, id: last }]) : data.forEach(pass));
  channel.postMessage({ hello: true });
}

async function listen() {
  const answer = await fetch(`/schedulerService/events?follow=true${last ? `&after=${last}` : ""}`, { headers: { accept: "text/event-stream" } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  const isBack = state === "reconnecting";
  both({ state: "live" });
  if (isBack) both({ missed: true });   // a page may have asked in vain meanwhile
  let rest = "";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const field = Object.fromEntries(event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()]));
      if (field.event === "missed") both({ missed: true });
      else if (field.data) gather({ change: JSON.parse(field.data), id: field.id });
    }
  }
}

async function lead() {   // never returns: the tab holds the lock until it closes, then the next one leads
  for (let wait = WAIT_MIN; ; wait = Math.min(WAIT_MAX, wait * 2)) {
    const began = Date.now();
    try { await listen(); } catch { /* said by the state, and tried again */ }
    if (Date.now() - began > WAIT_MAX) wait = WAIT_MIN;
    both({ state: "reconnecting" });
    await new Promise((go) => setTimeout(go, wait));
  }
}
channel ? navigator.locks.request("clickclock-live", lead) : lead();
