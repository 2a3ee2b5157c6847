// Which page an address shows. A page's file is loaded when it is first shown.
import { unsegment } from "./address.js";

/** `match("/jobs/{application}/{job}", "/jobs/shop/export")`: what the braces stand for, or null. */
export function match(pattern, path) {
  const wanted = pattern.split("/"), given = path.split("/");
  if (wanted.length !== given.length) return null;
  const found = {};
  for (const [at, part] of wanted.entries()) {
    if (part.startsWith("{")) {
      try { found[part.slice(1, -1)] = unsegment(given[at]); } catch { return null; }
      if (!given[at]) return null;
    } else if (part !== given[at]) return null;
  }
  return found;
}

export const pathNow = () => location.pathname.replace(/(.)\/+$/, "$1");

/** The route of an address, with the values of its path. */
export function routeOf(routes, path) {
  for (const route of routes) {
    const values = match(route.path, path);
    if (values) return { route, values };
  }
  return null;
}

/** Go to an address of the dashboard, as a link would. */
export function go(address) {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}
