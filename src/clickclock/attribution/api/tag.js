/* The tag: registers the ad click that led to this page, and says which customer the visitor is.
 * docs/how-to/register-clicks.md and docs/how-to/identify-customers.md are for its users.
 *
 * clickclock.js is what browsers get: this file without comments and spare blanks (python -m tests.house.tag).
 * Never sets a cookie, never throws, never changes a value that came in the address.
 * Invariants: each ad's address, each customer, and a visit without an ad, is registered once in a visit; nothing is stored or sent before the consent is there;
 * what keeps a click from being registered is told to the page's console, once.
 */
(function (w, d) {
  var tag = d.currentScript || d.querySelector('[src*="clickclock.js"]');
  var entry = location.search;
  var landed = +new Date;
  var first = here();
  var session = 'session';
  // Beside it, in the same storage: which customer was told.
  var known = 'session.customer';
  var nobody = 'no client_id: add data-client-id to the tag';
  // What an ad leaves in an address: all that says of which channel a click is.
  var marks = 'atag|asvt|(fb|tt|tw|[dgquy])clid|_?fbc|msclkid|[gw]braid|gad_source|li_fat_id|[Ss]c[Cc]id|epik|rdt_cid|tblci|dicbo|ob(cl|_click_)id|(amp;)?utm_\\w+|source|fb_\\w+';
  var engines = /^(?!(.*\.)?(mail|docs|accounts|android\.gm)(\.|$))(.*\.)?(google|bing|duckduckgo|yahoo|ecosia|yandex|baidu|qwant|startpage|naver|seznam|search\.brave)\.\w/;
  var page = {};
  var api = {
    start: start,
    identify: identify,
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

  // Called with 'denied', it registers ads and nobody: nothing is stored, and what was stored is deleted.
  function start(consent) {
    try {
      page.consent = typeof consent === 'string' ? consent : data('consent');
      keep(known);
      keep(session);
      api.id = data('id') || keep('local') || keep('local', random());
      if (page.consent === 'denied') api.id = '';
      register(entry, landed, first);
      register(location.search, +new Date, here());
      identify(page.customer || data('customer-id'));
    } catch (e) {
      warn(e);
    }
  }

  // Before the start it is only remembered, for as long as the page lives.
  function identify(customer) {
    try {
      page.customer = customer;
      if (!api.id || !customer) return;
      var ad = entry + location.search + keep(session);
      var client = own('client', '') || (/[?&]client_id=[^&\n]+/.exec(ad) || [''])[0].replace('?', '&');
      if (!client) return warn(nobody);
      var said = visitor() + '&customer_id=' + encodeURIComponent(customer) + client;
      if (keep(known) === said) return;
      keep(known, said);
      send('identify', said + '&event_time=' + +new Date, '');
    } catch (e) {
      warn(e);
    }
  }

  // What makes an address a click is an ad's mark and a client. Of ads seen before, those that fit are remembered.
  function register(query, at, where) {
    var seen = keep(session);
    var more = data('params');
    var origin = '';
    if (!has(more ? marks + '|' + more : marks, query)) {
      origin = seen ? '' : landing();
      if (!origin) return;
      query = '';
    } else if (seen.split('\n').indexOf(query) > -1) return;
    var client = own('client', query);
    if (client === null) return warn(nobody);
    keep(session, (query + '\n' + seen).slice(0, 9e3));
    // Our own values stand first, because the first of a name counts; the rest goes on as it came.
    send('aclick?' + visitor() + (page.consent ? '&consent=' + encodeURIComponent(page.consent) : '') + '&event_time=' + at + '&landing_page=' + where +
      client + (own('seller', query) || '') + origin + query.replace('?', '&'), undefined,
    ' Give the tag data-client-id and data-seller-id, or the account another profile.');
  }

  // Where a visit comes from that no ad led to, if these are to be registered; a page of our own led to no visit.
  function landing() {
    var from = /^[^:]+:..(?:www\.)?([^/:?#]+)/.exec(d.referrer);
    if (data('landings') === null || from && location.hostname.replace(/^www\./, '') === from[1]) return '';
    return !from ? '&source=direct' : '&source=' + (engines.test(from[1]) ? 'organic' : 'referral') + '&referrer=' + encodeURIComponent(from[1]);
  }

  // Without a body, or with plain text, so that no browser asks in advance. Only fetch says what was answered.
  function send(path, body, advice) {
    var url = (data('url') || tag.src).replace(/\/?(clickclock\.js.*)?$/, '/') + path;
    if (w.fetch && 'keepalive' in Request.prototype) {
      fetch(url, {method: 'POST', keepalive: true, credentials: 'omit', body: body}).then(function (answer) {
        return answer.ok || answer.json().then(function (told) {
          warn((told.errors[0] ? told.errors : [told]).map(function (each) {
            return each.message;
          }).join(' ') + advice);
        });
      }, image).catch(function () {});
    } else if (!navigator.sendBeacon || !navigator.sendBeacon(url, body)) image();

    function image() {
      new Image().src = body ? url + '?' + body : url;
    }
  }

  function here() {
    return encodeURIComponent(location.host + location.pathname);
  }

  function visitor() {
    return api.id && 'cli_ubid=' + encodeURIComponent(api.id);
  }

  // The part of a query that is our own, if the address does not have it; null if nobody has.
  function own(whose, query) {
    var value = data(whose + '-id');
    return has(whose + '_id', query) ? '' : value ? '&' + whose + '_id=' + encodeURIComponent(value) : null;
  }

  function warn(text) {
    if (!page.told) console.warn('clickclock: ' + text);
    page.told = 1;
  }

  function has(names, query) {
    return RegExp('[?&](' + names + ')=[^&]').test(query);
  }

  // Of the tag, or of a page that cannot give the tag attributes: a tag manager puts the same names into this object.
  function data(name) {
    return (w.clickclockSettings || {})[name] || tag.getAttribute('data-' + name);
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
      var store = w[area.split('.')[0] + 'Storage'];
      var name = area === known ? 'clickclock.customer' : 'clickclock';
      if (page.consent === 'denied') delete store[name];
      else if (value) store[name] = value;
      else value = store[name];
    } catch (e) {}
    return page[area] = value || page[area] || '';
  }
})(window, document);
