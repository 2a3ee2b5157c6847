// Every page: its address, the file that shows it, and where navigation has it. A page is added by one line.
// `word` puts it into the navigation, under "More" with `more`; `key` goes there after `g`.
export const ROUTES = [
  { path: "/", load: () => import("./pages/overview.js"), group: "Scheduler", word: "Overview", key: "o" },
  { path: "/jobs", load: () => import("./pages/jobs.js"), group: "Scheduler", word: "Jobs", key: "j" },
  { path: "/jobs/{application}/{job}", load: () => import("./pages/job.js") },
  { path: "/runs", load: () => import("./pages/runs.js"), group: "Scheduler", word: "Runs", key: "r" },
  { path: "/runs/{triggerId}", load: () => import("./pages/run.js") },
  { path: "/calendar", load: () => import("./pages/calendar.js"), group: "Scheduler", word: "Calendar", key: "d" },
  { path: "/lag", load: () => import("./pages/lag.js"), group: "Scheduler", word: "Heat map", more: true },
  { path: "/groups", load: () => import("./pages/groups.js"), group: "Scheduler", word: "Groups", more: true },
  { path: "/backfills", load: () => import("./pages/backfills.js"), group: "Scheduler", word: "Backfills", more: true },
  { path: "/calendars", load: () => import("./pages/calendars.js"), group: "Scheduler", word: "Calendars", more: true },
  { path: "/clusters", load: () => import("./pages/clusters.js"), group: "Scheduler", word: "Clusters", more: true },
  { path: "/mappings", load: () => import("./pages/mappings.js"), group: "Scheduler", word: "Mappings", more: true },
  { path: "/alarms", load: () => import("./pages/alarms.js"), group: "Scheduler", word: "Alarms", key: "a" },
  { path: "/schedules/new", load: () => import("./pages/schedule.js") },
  { path: "/schedules/{scheduleId}", load: () => import("./pages/schedule.js") },
  { path: "/events", load: () => import("./pages/events.js"), group: "Scheduler", word: "Events", more: true, key: "e" },
  { path: "/chains/{application}/{job}", load: () => import("./pages/chain.js") },
];
