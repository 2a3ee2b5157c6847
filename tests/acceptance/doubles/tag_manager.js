// What a server container offers a template, as its documentation says, over real HTTP: node tag_manager.js TEMPLATE GIVEN
// GIVEN is {"data": …, "event": …, "address": …}. Prints {"outcome": …, "log": […]}.
const fs = require('fs');
const [code, given] = [fs.readFileSync(process.argv[2], 'utf8'), JSON.parse(process.argv[3])];
const log = [];
const offered = {
  JSON: {stringify: JSON.stringify, parse: (text) => { try { return JSON.parse(text); } catch (e) { return undefined; } }},
  encodeUriComponent: (text) => encodeURIComponent(text),
  getAllEventData: () => given.event,
  getRemoteAddress: () => given.address,
  getTimestampMillis: () => Date.now(),
  getType: (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value),
  logToConsole: (line) => log.push(line),
  makeString: (value) => String(value),
  sendHttpRequest: (url, options, body) =>
    fetch(url, {method: options.method, headers: options.headers, body: body, signal: AbortSignal.timeout(options.timeout)})
      .then(async (answer) => ({statusCode: answer.status, headers: {}, body: await answer.text()})),
};
const asked = (name) => {
  if (!offered[name]) throw new Error('no such API: ' + name);
  return offered[name];
};
const end = (outcome) => console.log(JSON.stringify({outcome: outcome, log: log}));
const data = {...given.data, gtmOnSuccess: () => end('success'), gtmOnFailure: () => end('failure')};
// The sandbox has none of the names of Node or of a browser.
new Function('require', 'data', 'fetch', 'process', 'console', 'global', 'globalThis', code)(asked, data);
