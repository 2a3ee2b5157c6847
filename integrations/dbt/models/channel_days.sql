-- Credit by the linear and the last model: a row for each client, day of order, channel, campaign and currency.
-- Credits are in minor units; `..._net` is after refunds.
select
  client_id, order_day, channel, campaign, currency,
  count(distinct order_id) as orders,
  sum(last_credit) as last_credit,
  sum(last_credit - last_refund) as last_net,
  sum(linear_credit) as linear_credit,
  sum(linear_credit - linear_refund) as linear_net
from {{ ref('touchpoint_credits') }}
where place > 0
group by all
