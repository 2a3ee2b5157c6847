-- Clicks of twelve parameters and about 350 bytes, each with an identifier and a time of its own: no two are alike.
-- Made by joining strings, not by wrk.format, which costs so much that it would slow down whoever is measured.
local head = "GET /aclick?client_id=clicks-bench&seller_id=387071"
  .. "&asvt=2|r9sga6ewt7p9ps59stvm59gotyii6qht|0.0040838|1664429063646&atag=BRAND_AD_TAG%7Cos_62e8d149a52d65"
  .. "&device_brand=Samsung&device_model=SM-G991B&fb_account_id=120330000000001&fb_campaign_id=120330000000002"
  .. "&fb_adset_id=120330000000003&fb_ad_id=120330000000004&event_time="
local tail = " HTTP/1.1\r\nHost: clicks.example\r\n\r\n"
local random, milliseconds = math.random, os.time() * 1000

function init(arguments)
  math.randomseed(milliseconds)
end

function request()
  return head .. milliseconds + random(0, 999) .. "&cli_ubid=" .. random(1e8, 1e9 - 1) .. random(1e8, 1e9 - 1) .. tail
end
