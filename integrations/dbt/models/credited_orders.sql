-- One row for each order: its amount in minor units of its currency, and how many touchpoints it has.
select
  client_id, order_id, placed_at, order_day, currency, amount_minor, refunded_minor, status, reason,
  coalesce(touches, 0) as touchpoints
from {{ ref('touchpoint_credits') }}
where place <= 1
