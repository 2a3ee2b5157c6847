"""Attribution the plain way, with pandas, from the same files: `python -m tests.bench.peer_pandas CLICKS ORDERS`.

What an analyst would write: read, join, sort, group. It does less than a run of ours: identity by the union of two
identifiers only, repeats against the click before, no invalid traffic, no exact splits, six models that look at one
journey, nothing written. Prints its credited orders and credit rows as JSON.
"""

import json
import sys

import numpy as np
import pandas as pd

DAY_MS = 86_400_000
WINDOW_DAYS = {"google": 30, "meta": 7, "onsite": 14}
AD = ["client_id", "atag", "asvt", "ad", "gclid"]


def read(clicks_path: str, orders_path: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Clicks and orders, with their times in milliseconds."""
    columns = ["id", "client_id", "cli_ubid", "device_id", "seller_id", "atag", "asvt", "gclid", "uclid", "event_time"]
    columns += ["fb_ad_id", "fb_campaign_id", "utm_source", "utm_content", "source"]
    clicks = pd.read_parquet(clicks_path, columns=columns)
    wanted = ["client_id", "order_id", "cli_ubid", "device_id", "event_time", "amount_minor", "seller_id"]
    orders = pd.read_parquet(orders_path, columns=wanted)
    for frame in (clicks, orders):
        frame["time_ms"] = frame["event_time"].astype("datetime64[ms, UTC]").astype("int64")
    clicks["ad"] = clicks["fb_ad_id"].fillna(clicks["utm_content"])
    source = clicks["utm_source"].fillna(clicks["source"])
    channel = source.fillna("other").mask(clicks["gclid"].notna(), "google").mask(clicks["fb_ad_id"].notna(), "meta")
    clicks["channel"] = channel.mask(clicks["uclid"].notna(), "onsite")
    return clicks, orders.sort_values("time_ms").drop_duplicates(["client_id", "order_id"], keep="last")


def add_people(clicks: pd.DataFrame, orders: pd.DataFrame) -> None:
    """One person for each user id, and for each device the user it was first seen with."""
    both = pd.concat([clicks, orders])[["client_id", "cli_ubid", "device_id"]].dropna().drop_duplicates()
    user_of = both.groupby(["client_id", "device_id"])["cli_ubid"].min()
    for frame in (clicks, orders):
        keys = pd.MultiIndex.from_frame(frame[["client_id", "device_id"]])
        by_device = pd.Series(user_of.reindex(keys).to_numpy(), index=frame.index)
        frame["person"] = frame["cli_ubid"].fillna(by_device).fillna(frame["device_id"])


def touchpoints(clicks: pd.DataFrame) -> pd.DataFrame:
    """The clicks that count."""
    ordered = clicks.sort_values(["client_id", "person", "time_ms", "id"])
    first = ordered["gclid"].isna() | ~ordered.duplicated(["client_id", "gclid"])
    ordered = ordered[first]
    before = ordered.groupby(["client_id", "person", *AD[1:]], dropna=False)["time_ms"].shift()
    return ordered[~(ordered["time_ms"] - before < DAY_MS / 24)]


def journeys(touches: pd.DataFrame, orders: pd.DataFrame) -> pd.DataFrame:
    """A row for each order and each of its touchpoints."""
    columns = ["client_id", "person", "time_ms", "channel", "id"]
    pairs = orders.merge(touches[columns], on=["client_id", "person"], suffixes=("_order", ""))
    before = pairs["time_ms_order"] - pairs["time_ms"]
    window = pairs["channel"].map(WINDOW_DAYS).fillna(30) * DAY_MS
    return pairs[(before > 0) & (before <= window)].sort_values(["client_id", "order_id", "time_ms", "id"])


def credit(pairs: pd.DataFrame) -> pd.DataFrame:
    """The six models."""
    by_order = pairs.groupby(["client_id", "order_id"], sort=False)
    place, count = by_order.cumcount(), by_order["id"].transform("size")
    weights = pd.DataFrame(index=pairs.index)
    weights["first"] = (place == 0).astype(float)
    weights["last"] = (place == count - 1).astype(float)
    weights["linear"] = 1.0 / count
    weights["time_decay"] = 2.0 ** ((pairs["time_ms"] - by_order["time_ms"].transform("max")) / (7 * DAY_MS))
    ends = (place == 0) | (place == count - 1)
    weights["position"] = np.where(count <= 2, 1.0 / count, np.where(ends, 0.4, 0.2 / (count - 2).clip(lower=1)))
    of_channel = pairs.groupby(["client_id", "order_id", "channel"], sort=False)["id"].transform("size")
    weights["shapley"] = 1.0 / of_channel / by_order["channel"].transform("nunique")
    for name in weights:
        total = weights[name].groupby([pairs["client_id"], pairs["order_id"]], sort=False).transform("sum")
        pairs[f"{name}_credit"] = (weights[name] / total * pairs["amount_minor"]).round()
    return pairs


def main(clicks_path: str, orders_path: str) -> None:
    clicks, orders = read(clicks_path, orders_path)
    add_people(clicks, orders)
    credited = credit(journeys(touchpoints(clicks), orders))
    print(json.dumps({"rows": len(credited), "orders": int(credited["order_id"].nunique())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
