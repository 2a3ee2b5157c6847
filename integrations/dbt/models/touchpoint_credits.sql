-- One row for each touchpoint of each order, as it counts now. An order without a touchpoint has one row, with place 0.
-- A run retracts the rows of an order that it credits anew: such rows have a smaller `run` than the retraction.
select * exclude (is_retraction)
from {{ source('lake', 'credits') }} as credit
where not is_retraction
  and not exists (
    select 1
    from {{ source('lake', 'credits') }} as retraction
    where retraction.is_retraction
      and retraction.order_month = credit.order_month
      and retraction.client_id = credit.client_id
      and retraction.order_id = credit.order_id
      and retraction.run > credit.run
  )
