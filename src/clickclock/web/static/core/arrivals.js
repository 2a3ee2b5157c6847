// Listens to clicks, views, rejections and orders as they come. The browser goes on by itself after the last one that it got. It is
// closed while the tab is hidden: the service lets few watch at once, and nobody reads a hidden tab.
const KINDS = ["click", "view", "rejection", "order", "other"];

/** `hear({ seen, position, ...fields })` for each, `hear({ missed })` for a gap, `hear({ state })` when it is live or not. */
export function arrivals(query, hear) {
  let source = null;
  const open = () => {
    source = new EventSource(`/attribution/clicks/stream?${new URLSearchParams(query)}`);
    source.onerror = () => hear({ state: "connecting" });
    source.addEventListener("watching", () => hear({ state: "live" }));
    source.addEventListener("missed", ({ data }) => hear({ missed: JSON.parse(data) }));
    for (const seen of KINDS) source.addEventListener(seen, ({ data, lastEventId }) => hear({ ...JSON.parse(data), seen, position: lastEventId }));
  };
  const shown = () => {
    source?.close();
    if (document.hidden) hear({ state: "paused" });
    else open();
  };
  document.addEventListener("visibilitychange", shown);
  shown();
  return () => { document.removeEventListener("visibilitychange", shown); source?.close(); };
}
