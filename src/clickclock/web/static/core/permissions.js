// What the reader may do, as the service says it: asked once, and again after a sign-in (which loads the page anew).
// The service decides all the same; this only keeps a page from offering what would be refused.
import { ask } from "./api.js";

let held = null, name = "";

/** Learn who asks; `draw` is called when it is known. Until then everything is offered, and the service refuses. */
export const learn = (draw) => ask("whoami").then(({ whoami }) => { [held, name] = [whoami.permissions, whoami.name]; draw(); }, () => {});
export const whoAsks = () => name;

/** Whether the reader holds a permission: of one application or client, or of anything if none is named. */
export function may(permission, of = null) {
  const names = held?.[permission];
  return !held || (!!names && (of == null || names.includes("*") || names.includes(of)));
}

/** Why it is not offered. */
export const lacks = (permission, of = null) => `${name} may not do this: it lacks ${permission}${of == null ? "" : ` of ${of}`}.`;
