/* A custom pixel for Shopify: clicks on ads, and which customer the visitor is.
 * Paste it under Settings > Customer events > Add custom pixel. docs/how-to/connect-shopify.md is for its users.
 *
 * Never sends an order or an e-mail address. Invariants: an ad's address is sent once in a visit; the parameters go on
 * byte for byte; of a visitor who refuses, nothing is stored, and nothing is sent that says who it is.
 */
const COLLECTOR = 'https://clicks.example.com';
const CLIENT_ID = 'shop-1';

const MARKS = /[?&](atag|asvt|(fb|tt|tw|[dgquy])clid|_?fbc|msclkid|[gw]braid|gad_source|li_fat_id|[Ss]c[Cc]id|epik|rdt_cid|tblci|dicbo|ob(cl|_click_)id|(amp;)?utm_\w+|source|fb_\w+)=[^&]/;

let consent = said(init.customerPrivacy);
customerPrivacy.subscribe('visitorConsentCollected', (event) => { consent = said(event.customerPrivacy); });

analytics.subscribe('page_viewed', async (event) => {
  const query = event.context.document.location.search;
  if (!MARKS.test(query)) return;
  const who = consent === 'granted' ? visitor(event) + '&' : '';
  if (who) {
    const seen = (await browser.sessionStorage.getItem('clickclock')) || '';
    if (seen.split('\n').includes(query)) return;
    await browser.sessionStorage.setItem('clickclock', (query + '\n' + seen).slice(0, 9000));
  }
  const client = /[?&]client_id=[^&]/.test(query) ? '' : '&client_id=' + encodeURIComponent(CLIENT_ID);
  const {host, pathname} = event.context.document.location;
  send('aclick?' + who + 'consent=' + (who ? 'granted' : 'denied') + '&event_time=' + Date.parse(event.timestamp) +
    '&landing_page=' + encodeURIComponent(host + pathname) + client + query.replace('?', '&'));
});

// The customer of the order is whoever clicked: an order that names this customer_id finds the click.
analytics.subscribe('checkout_completed', (event) => {
  const customer = event.data.checkout.order && event.data.checkout.order.customer;
  if (consent !== 'granted' || !customer || !customer.id) return;
  const id = String(customer.id).replace(/^.*\//, '');
  send('identify', visitor(event) + '&customer_id=' + encodeURIComponent(id) + '&client_id=' +
    encodeURIComponent(CLIENT_ID) + '&event_time=' + Date.parse(event.timestamp));
});

function said(privacy) {
  return privacy.marketingAllowed ? 'granted' : 'denied';
}

function visitor(event) {
  return 'cli_ubid=' + encodeURIComponent(event.clientId);
}

function send(path, body) {
  fetch(COLLECTOR + '/' + path, {method: 'POST', keepalive: true, credentials: 'omit', body: body})
    .then(async (answer) => {
      if (!answer.ok) console.warn('clickclock: the collector answered ' + answer.status + ': ' + await answer.text());
    })
    .catch(() => console.warn('clickclock: the collector does not answer at ' + COLLECTOR));
}
