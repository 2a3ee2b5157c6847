// What Shopify offers a custom pixel, as its documentation says, over real HTTP: node shopify.js PIXEL EVENTS COLLECTOR
// EVENTS is [[name, event], …], published one after the other in one visit; of `visitorConsentCollected`, the event is what
// the visitor allows. Before the first of these, ads may be measured.
const fs = require('fs');
const [events, collector] = [JSON.parse(process.argv[3]), process.argv[4]];
const code = fs.readFileSync(process.argv[2], 'utf8').replace('https://clicks.example.com', collector);
const subscribers = {};
const kept = {};
const storage = {
  getItem: async (name) => (name in kept ? kept[name] : null),
  setItem: async (name, value) => { kept[name] = value; },
};
const analytics = {subscribe: (name, call) => { (subscribers[name] = subscribers[name] || []).push(call); }};
const browser = {sessionStorage: storage, localStorage: storage, cookie: {}};
const init = {customerPrivacy: {analyticsProcessingAllowed: true, marketingAllowed: true}};
new Function('analytics', 'browser', 'init', 'customerPrivacy', 'fetch', code)(analytics, browser, init, analytics, (url, options) => {
  const {keepalive, credentials, ...rest} = options;
  return fetch(url, rest);
});
(async () => {
  for (const [name, event] of events) for (const call of subscribers[name] || []) await call(event);
})();
