// The address is the state: which page, and what is chosen on it. Reload, back and a sent link show the same.

/** One segment of a path for any name. A browser would take `.` and `..` as steps in a path, so they get a tilde. */
export const segment = (name) => (/^(~|\.{1,2}$)/.test(name) ? "~" : "") + encodeURIComponent(name);
export const unsegment = (text) => decodeURIComponent(text).replace(/^~/, "");
/** `to("/jobs", "shop", "export")`: the path of a page. */
export const to = (base, ...names) => `${base}/${names.map(segment).join("/")}`;

/**
 * What the address says for the names that a page knows; `ignored` are the others, which a page names.
 * @param {string[]} known
 * @returns {Record<string, any>}
 */
export function filters(known) {
  const given = new URLSearchParams(location.search);
  const found = Object.fromEntries(known.map((name) => [name, given.get(name) ?? ""]));
  const ignored = [...new Set(given.keys())].filter((name) => !known.includes(name) && name !== "tz");
  return { ...found, ignored };
}

/** Change what the address says, without a new page: as a step of its own (`push`), or in place. */
export function choose(changed, { push = false } = {}) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changed)) {
    if (value == null || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== location.href) history[push ? "pushState" : "replaceState"](null, "", url);
}

/** An address of this page with something else chosen, for a link. */
export function withChosen(changed) {
  const given = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changed)) value == null || value === "" ? given.delete(name) : given.set(name, value);
  return given.size ? `${location.pathname}?${given}` : location.pathname;
}
