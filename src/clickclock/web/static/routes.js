// Every page: its address, the file that shows it, and where navigation has it. A page is added by one line.
// `word` puts it into the navigation, under "More" with `more`; `key` goes there after `g`.
export const ROUTES = [
  { path: "/", load: () => import("./pages/overview.js"), group: "Scheduler", word: "Overview", key: "o" },
  { path: "/jobs", load: () => import("./pages/jobs.js"), group: "Scheduler", word: "Jobs", key: "j" },
  { path: "/jobs/{application}/{job}", load: () => import("./pages/job.js") },
  { path: "/runs", load: () => import("./pages/runs.js"), group: "Scheduler", word: "Runs", key: "r" },
  { path: "/runs/{triggerId}", load: () => import("./pages/run.js") },
  { path: "/alarms", load: () => import("./pages/alarms.js"), group: "Scheduler", word: "Alarms", key: "a" },
  { path: "/schedules/new", load: () => import("./pages/schedule.js") },
  { path: "/schedules/{scheduleId}", load: () => import("./pages/schedule.js") },
  { path: "/events", load: () => import("./pages/events.js"), group: "Scheduler", word: "Events", more: true, key: "e" },
  { path: "/chains/{application}/{job}", load: () => import("./pages/chain.js") },
];
