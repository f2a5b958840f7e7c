"""Connections as table rows: who is connected, since when, and what it does. Pure."""

import pandas as pd

from dashboard.frames.client_names import client_names

COLUMNS = (
    "name",
    "client_name",
    "user",
    "vhost",
    "peer_host",
    "protocol",
    "state",
    "channels",
    "connected_at",
    "client_product",
    "heartbeat",
    "node",
)
CHANNEL_COLUMNS = ("connection_name", "messages_unacked", "lately.publish", "lately.deliver_get", "lately.ack")

_TEXTS = ("user", "vhost", "protocol", "state", "client_product", "node")
_SEARCHED = ("client", "name", "host", "user", "vhost")
_SUMS = {
    "lately.publish": "published",
    "lately.deliver_get": "delivered",
    "lately.ack": "acked",
    "messages_unacked": "unacked",
}


def connection_rows(connections: pd.DataFrame, channels: pd.DataFrame, text: str) -> pd.DataFrame:
    """One row per connection in whose names `text` occurs, the busiest first.

    Columns: `client`, `host`, `name`, `user`, `vhost`, `protocol`, `state`, `client_product`, `node` ("" if unknown),
    `channels`, `heartbeat` (seconds), `since` (seconds since 1970), and, of all its channels together,
    `published`, `delivered`, `acked` (per second) and `unacked`. NaN if unknown: also where one channel is unknown.
    """
    rows = pd.DataFrame({"client": client_names(connections), "host": connections["peer_host"].fillna("").astype(str)})
    rows["name"] = connections["name"].astype(str)
    for name in _TEXTS:
        rows[name] = connections[name].fillna("").astype(str)
    for name, source in {"channels": "channels", "heartbeat": "heartbeat", "since": "connected_at"}.items():
        rows[name] = pd.to_numeric(connections[source], errors="coerce")
    needle = text.casefold()
    hit = rows[list(_SEARCHED)].apply(lambda column: column.str.casefold().str.contains(needle, regex=False))
    rows = rows[hit.any(axis=1)]
    mine = channels[channels["connection_name"].isin(rows["name"])]
    numbers = mine[list(_SUMS)].apply(pd.to_numeric, errors="coerce")
    # Of a client of another protocol there is no channel: its sums are unknown, not 0.
    sums = numbers.astype(float).groupby(mine["connection_name"]).agg(lambda each: each.sum(skipna=False)).astype(float)
    joined = rows.merge(sums.rename(columns=_SUMS), how="left", left_on="name", right_index=True)
    busy = joined["published"].fillna(0) + joined["delivered"].fillna(0)
    ordered: pd.DataFrame = joined.assign(_busy=busy).sort_values(["_busy", "client"], ascending=[False, True])
    return ordered.drop(columns="_busy")
