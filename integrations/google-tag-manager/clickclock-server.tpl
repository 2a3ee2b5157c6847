___TERMS_OF_SERVICE___

By creating or modifying this file you agree to Google Tag Manager's Community
Template Gallery Developer Terms of Service available at
https://developers.google.com/tag-manager/gallery-tos (or such other URL as
Google may provide), as modified from time to time.


___INFO___

{
  "type": "TAG",
  "id": "cvt_temp_public_id",
  "version": 1,
  "securityGroups": [],
  "displayName": "clickclock",
  "categories": [
    "ATTRIBUTION",
    "ANALYTICS"
  ],
  "brand": {
    "id": "brand_dummy",
    "displayName": "clickclock"
  },
  "description": "Sends ad clicks and purchases of a server container to your own clickclock collector. Fire it on page_view and purchase.",
  "containerContexts": [
    "SERVER"
  ]
}


___TEMPLATE_PARAMETERS___

[
  {
    "type": "TEXT",
    "name": "collectorUrl",
    "displayName": "Address of the collector",
    "simpleValueType": true,
    "help": "Where clickclock takes clicks, for example https://clicks.example.com",
    "defaultValue": "https://clicks.example.com",
    "valueValidators": [
      {
        "type": "REGEX",
        "args": [
          "https://[^/?#]+/?"
        ],
        "errorMessage": "Give an address that begins with https:// and has no path."
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "clientId",
    "displayName": "client_id",
    "simpleValueType": true,
    "help": "Your client account in clickclock.",
    "valueValidators": [
      {
        "type": "NON_EMPTY"
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "sellerId",
    "displayName": "seller_id",
    "simpleValueType": true,
    "help": "Only if your account's profile wants one."
  },
  {
    "type": "TEXT",
    "name": "visitorId",
    "displayName": "cli_ubid",
    "simpleValueType": true,
    "help": "Your own id of the visitor. Without it the event's client_id counts."
  },
  {
    "type": "TEXT",
    "name": "customerId",
    "displayName": "customer_id",
    "simpleValueType": true,
    "help": "Your own id of the customer, for purchases, or empty."
  },
  {
    "type": "TEXT",
    "name": "ordersToken",
    "displayName": "Token for orders",
    "simpleValueType": true,
    "help": "The token of your account's orders, from a variable that holds a secret. Empty if it needs none."
  }
]


___SANDBOXED_JS_FOR_SERVER___

// A page view with an ad's parameters becomes a click, a purchase becomes an order:
// docs/how-to/use-google-tag-manager.md.
const JSON = require('JSON');
const encodeUriComponent = require('encodeUriComponent');
const getAllEventData = require('getAllEventData');
const getRemoteAddress = require('getRemoteAddress');
const getTimestampMillis = require('getTimestampMillis');
const getType = require('getType');
const logToConsole = require('logToConsole');
const makeString = require('makeString');
const sendHttpRequest = require('sendHttpRequest');

const MARKS = ['atag', 'asvt', 'gclid', 'uclid', 'gbraid', 'wbraid', 'gad_source', 'fbclid', 'msclkid', 'ttclid', 'twclid',
  'li_fat_id', 'ScCid', 'sccid', 'epik', 'dclid', 'yclid', 'qclid', 'rdt_cid', 'tblci', 'dicbo', 'obclid', 'ob_click_id',
  'fbc', '_fbc', 'source'];
const event = getAllEventData();
const base = data.collectorUrl.slice(-1) === '/' ? data.collectorUrl.slice(0, -1) : data.collectorUrl;
const visitor = data.visitorId || event.client_id;
// Google's consent mode: G100 and G101 say that ads may store nothing.
const isDenied = makeString(event['x-ga-gcs'] || '').slice(0, 3) === 'G10';

if (event.event_name === 'page_view') sendClick();
else if (event.event_name === 'purchase') sendOrder();
else data.gtmOnSuccess();

// The parameters go on byte for byte. Ours stand first, because the first of a name counts.
function sendClick() {
  const query = queryOf(event.page_location || '');
  if (!query.split('&').some(isMark)) return data.gtmOnSuccess();
  if (!visitor && !isDenied) return fail('an event without client_id; set cli_ubid in the tag');
  const who = isDenied ? 'consent=denied' : 'cli_ubid=' + encodeUriComponent(makeString(visitor));
  let own = who + '&event_time=' + makeString(getTimestampMillis()) +
    '&landing_page=' + encodeUriComponent(event.page_location.split('?')[0]) +
    unless(query, 'client_id', data.clientId) + unless(query, 'seller_id', data.sellerId);
  const headers = isDenied ? {} : {'X-Forwarded-For': event.ip_override || getRemoteAddress()};
  if (event.user_agent) headers['User-Agent'] = event.user_agent;
  send(base + '/aclick?' + own + '&' + query, {method: 'GET', headers: headers}, undefined);
}

// The amount of a purchase is a number in JSON. It is written as text, as clickclock takes money.
function sendOrder() {
  if (isDenied) return data.gtmOnSuccess();
  if (!visitor) return fail('a purchase without client_id; set cli_ubid in the tag');
  const order = {
    client_id: data.clientId,
    order_id: text(event.transaction_id),
    cli_ubid: makeString(visitor),
    event_time: getTimestampMillis(),
    amount: text(event.value),
    currency: text(event.currency)
  };
  if (data.sellerId) order.seller_id = data.sellerId;
  if (data.customerId) order.customer_id = makeString(data.customerId);
  const headers = {'Content-Type': 'application/json'};
  if (data.ordersToken) headers.Authorization = 'Bearer ' + data.ordersToken;
  send(base + '/orders', {method: 'POST', headers: headers}, JSON.stringify(order));
}

function text(value) {
  return getType(value) === 'undefined' || value === null ? undefined : makeString(value);
}

function queryOf(address) {
  const rest = address.split('#')[0];
  const at = rest.indexOf('?');
  return at < 0 ? '' : rest.slice(at + 1);
}

function isMark(part) {
  const name = part.split('=')[0];
  const hasValue = part.length > name.length + 1;
  return hasValue && (MARKS.indexOf(name) >= 0 || name.indexOf('utm_') === 0 || name.indexOf('fb_') === 0);
}

function unless(query, name, value) {
  const isThere = query.split('&').some((part) => part.indexOf(name + '=') === 0 && part.length > name.length + 1);
  return isThere || !value ? '' : '&' + name + '=' + encodeUriComponent(makeString(value));
}

function send(url, options, body) {
  options.timeout = 5000;
  sendHttpRequest(url, options, body).then((answer) => {
    if (answer.statusCode >= 200 && answer.statusCode < 300) data.gtmOnSuccess();
    else fail('the collector answered ' + answer.statusCode + ': ' + answer.body);
  }, () => fail('the collector does not answer at ' + base));
}

function fail(sentence) {
  logToConsole('clickclock: ' + sentence);
  data.gtmOnFailure();
}


___SERVER_PERMISSIONS___

[
  {
    "instance": {
      "key": {
        "publicId": "logging",
        "versionId": "1"
      },
      "param": [
        {
          "key": "environments",
          "value": {
            "type": 1,
            "string": "debug"
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "read_event_data",
        "versionId": "1"
      },
      "param": [
        {
          "key": "eventDataAccess",
          "value": {
            "type": 1,
            "string": "any"
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "read_request",
        "versionId": "1"
      },
      "param": [
        {
          "key": "requestAccess",
          "value": {
            "type": 1,
            "string": "specific"
          }
        },
        {
          "key": "remoteAddressAllowed",
          "value": {
            "type": 8,
            "boolean": true
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "send_http",
        "versionId": "1"
      },
      "param": [
        {
          "key": "allowedUrls",
          "value": {
            "type": 1,
            "string": "specific"
          }
        },
        {
          "key": "urls",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 1,
                "string": "https://clicks.example.com/*"
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  }
]


___TESTS___

scenarios: []


___NOTES___

Replace https://clicks.example.com/* in the permission "Sends HTTP requests" by the address of your collector.
