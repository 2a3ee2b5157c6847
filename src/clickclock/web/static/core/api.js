// Asks the service's public interface. Whatever a page shows, curl shows: no question here is private to the dashboard.
// It is the only file that fetches, but for the stream (live.js) and the log's worker.
import { hear } from "./time.js";

/** An answer that is no success: the service's own sentence, each fault, and the id under which its log has more. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.message ?? `The service answered ${status}.`);
    Object.assign(this, { status, code: body.code ?? "", faults: body.errors ?? [], requestId: body.requestId ?? "" });
  }
}

/** No answer at all: the service is away, or the network is. */
export class Unreachable extends Error {
  constructor(message = "The service does not answer. This page asks again by itself; look whether the service runs.") {
    super(message);
    Object.assign(this, { status: 0, code: "unreachable", faults: [], requestId: "" });
  }
}

/** How long a page waits: longer than the service itself gives an answer. A question about credit may wait for others first. */
const waitOf = (path) => (path.startsWith("/attribution/") ? 130 : 60);
const late = (method, path) => `The service has not answered within ${waitOf(path)} s. ${method === "GET"
  ? "Look whether it is busy or stopped, then reload this page." : "It may have done what you asked: reload this page and look, before you try again."}`;

/**
 * @param {string} method
 * @param {string} path
 * @param {{ query?: object, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} [more]
 */
async function call(method, path, { query = {}, body, headers = {}, signal } = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value != null && value !== ""));
  const sent = Date.now(), limit = new AbortController(), timer = setTimeout(() => limit.abort(), waitOf(path) * 1000);
  try {
    const answer = await fetch(asked.size ? `${path}?${asked}` : path, {
      method, signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
      headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    hear(answer.headers.get("date"), sent, Date.now());
    return await understood(answer);
  } catch (error) {
    if (error instanceof Refused || signal?.aborted) throw error;
    throw new Unreachable(limit.signal.aborted ? late(method, path) : undefined);
  } finally { clearTimeout(timer); }
}

/** What an answer says. One that is no JSON says nothing; one that breaks off is none. */
async function understood(answer) {
  const found = await answer.json().catch((error) => { if (error instanceof SyntaxError) return {}; throw error; });
  if (answer.status === 401) dispatchEvent(new CustomEvent("clickclock-unauthenticated", { detail: new Refused(401, found) }));
  if (!answer.ok) throw new Refused(answer.status, found);
  return Object.assign(found, { etag: answer.headers.get("etag") });
}

/** How people may sign in beside a token: the provider, or null. */
export const signInProvider = () => ask("/signIn").then(({ provider }) => provider).catch(() => null);

/** `ask("jobTrigger", { state: "failed" })`: an answer of the scheduler. A name with a slash in front is a whole path. */
export const ask = (name, query, signal) => call("GET", path(name), { query, signal });

/**
 * `change("PUT", "schedules", { scheduleId, paused: true }, { etag })`: a change; with `etag`, of that version only.
 * @param {string} method
 * @param {string} name
 * @param {unknown} [body]
 * @param {{ query?: object, etag?: string }} [more]
 */
export async function change(method, name, body, { query, etag } = {}) {
  const send = async () => call(method, path(name), { query, body, headers: { ...(await ours()), ...(etag ? { "if-match": etag } : {}) } });
  try {
    return await send();
  } catch (error) {
    if (error.code !== "noSessionToken") throw error;
    session = null;   // this browser has signed in anew, in another tab
    return send();
  }
}

let session = null;

/** What a change of a signed-in browser has to bring; a page of another site cannot read it. Nothing without a session. */
async function ours() {
  session ??= ask("whoami").then(({ whoami }) => (whoami.sessionToken ? { "x-session-token": whoami.sessionToken } : {}));
  try { return await session; } catch (error) { session = null; throw error; }
}

/** Begin a session by a token, or by the secret of a link: its cookie is out of reach of every script. */
export const signIn = ({ token, link }) =>
  call("POST", path("session"), token ? { headers: { authorization: `Bearer ${token}` } } : { body: { link } });
export const signOut = () => change("DELETE", "session");

const path = (name) => (name.startsWith("/") ? name : `/schedulerService/${name}`);
