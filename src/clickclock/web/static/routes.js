// Every page: its address, the file that shows it, and where navigation has it. A page is added by one line.
// `word` puts it into the navigation, under "More" with `more`; `key` goes there after `g`.
export const ROUTES = [
  { path: "/", load: () => import("./pages/overview.js"), group: "Scheduler", word: "Overview", key: "o" },
];
