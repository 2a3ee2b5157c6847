/* The tag: registers the ad click that led to this page. docs/how-to/register-clicks.md is for its users.
 *
 * clickclock.js is what browsers get: this file without comments and spare blanks (python -m tests.house.tag).
 * Never sets a cookie, never throws, never changes a value that came in the address.
 * Invariants: each ad's address is registered once in a visit; nothing is stored or sent before the consent is there.
 */
(function (w, d) {
  var tag = d.currentScript || d.querySelector('[src*="clickclock.js"]');
  var entry = location.search;
  var landed = +new Date;
  var session = 'session';
  var page = {};
  var api = {
    start: start,
    params: function () {
      return keep(session).split('\n')[0].slice(1);
    }
  };

  if ((w.clickclock || page).start) return;
  w.clickclock = api;
  if (tag && data('wait') === null) {
    // A page that is made in advance and perhaps never shown is no visit.
    if (d.prerendering) d.addEventListener('prerenderingchange', start);
    else start();
  }

  function start() {
    try {
      api.id = data('id') || keep('local') || keep('local', random());
      register(entry, landed);
      register(location.search, +new Date);
    } catch (e) {}
  }

  // What makes an address a click is an ad's mark and a client. Of ads seen before, those that fit are remembered.
  function register(query, at) {
    var seen = keep(session);
    var client = has('client_id', query) || data('client-id');
    if (client && has('atag|asvt|[gu]clid|[gw]braid', query) && seen.split('\n').indexOf(query) < 0) {
      keep(session, (query + '\n' + seen).slice(0, 9e3));
      // Our own values stand first, because the first of a name counts; the rest goes on as it came.
      query = (data('url') || tag.src).replace(/\/?(clickclock\.js.*)?$/, '/aclick?cli_ubid=') +
        encodeURIComponent(api.id) + '&event_time=' + at +
        (client === true ? '' : '&client_id=' + encodeURIComponent(client)) + query.replace('?', '&');
      // Without a body, so that no browser asks in advance whether it may.
      if (!navigator.sendBeacon || !navigator.sendBeacon(query)) new Image().src = query;
    }
  }

  function has(names, query) {
    return RegExp('[?&](' + names + ')=[^&]').test(query);
  }

  function data(name) {
    return tag.getAttribute('data-' + name);
  }

  function random() {
    try {
      return crypto.randomUUID();
    } catch (e) {
      return landed + '-' + Math.random();
    }
  }

  // Storage may be blocked or full: then this page remembers, for as long as it lives.
  function keep(area, value) {
    try {
      var store = w[area + 'Storage'];
      if (value) store.clickclock = value;
      else value = store.clickclock;
    } catch (e) {}
    return page[area] = value || page[area] || '';
  }
})(window, document);
