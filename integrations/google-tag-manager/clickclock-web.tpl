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
  "description": "Registers the ad clicks that lead to your pages, with your own clickclock collector. Fire it on all pages, after consent.",
  "containerContexts": [
    "WEB"
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
    "help": "Your own id of the visitor. Without it the tag makes one and keeps it in localStorage."
  },
  {
    "type": "TEXT",
    "name": "customerId",
    "displayName": "customer_id",
    "simpleValueType": true,
    "help": "Your own id of the customer who is logged in, or empty."
  },
  {
    "type": "TEXT",
    "name": "params",
    "displayName": "Further parameters that mark an ad",
    "simpleValueType": true,
    "help": "With a vertical bar between: aff|partner"
  },
  {
    "type": "CHECKBOX",
    "name": "landings",
    "checkboxText": "Register visits that no ad led to",
    "simpleValueType": true,
    "help": "As direct, organic or referral. Your account in clickclock needs the profile open."
  }
]


___SANDBOXED_JS_FOR_WEB_TEMPLATE___

// Loads the tag with its settings. The tag does the rest: docs/how-to/use-google-tag-manager.md.
const injectScript = require('injectScript');
const logToConsole = require('logToConsole');
const setInWindow = require('setInWindow');

const base = data.collectorUrl.slice(-1) === '/' ? data.collectorUrl.slice(0, -1) : data.collectorUrl;
const settings = {'client-id': data.clientId, 'url': base};
if (data.sellerId) settings['seller-id'] = data.sellerId;
if (data.visitorId) settings.id = data.visitorId;
if (data.customerId) settings['customer-id'] = data.customerId;
if (data.params) settings.params = data.params;
if (data.landings) settings.landings = true;
setInWindow('clickclockSettings', settings, true);

injectScript(base + '/clickclock.js', data.gtmOnSuccess, () => {
  logToConsole('clickclock: ' + base + '/clickclock.js cannot be loaded. Add this address to the permissions of the template.');
  data.gtmOnFailure();
}, 'clickclock');


___WEB_PERMISSIONS___

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
        "publicId": "access_globals",
        "versionId": "1"
      },
      "param": [
        {
          "key": "keys",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "key"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  },
                  {
                    "type": 1,
                    "string": "execute"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "clickclockSettings"
                  },
                  {
                    "type": 8,
                    "boolean": true
                  },
                  {
                    "type": 8,
                    "boolean": true
                  },
                  {
                    "type": 8,
                    "boolean": false
                  }
                ]
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
  },
  {
    "instance": {
      "key": {
        "publicId": "inject_script",
        "versionId": "1"
      },
      "param": [
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

Replace https://clicks.example.com/* in the permission "Injects scripts" by the address of your collector.
