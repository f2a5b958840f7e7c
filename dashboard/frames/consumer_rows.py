"""Consumers as table rows: unacked messages and prefetch limit of each. Pure."""

import pandas as pd

CONSUMER_COLUMNS = (
    "vhost",
    "queue",
    "tag",
    "channel_name",
    "connection_name",
    "user",
    "node",
    "peer_host",
    "prefetch_count",
    "ack_required",
    "active",
)
CHANNEL_COLUMNS = ("name", "consumer_count", "messages_unacked")
CONNECTION_COLUMNS = ("name", "client_name", "client_product", "peer_host")

UNLIMITED, AUTOMATIC = "no limit", "automatic ack"


def consumer_rows(consumers: pd.DataFrame, channels: pd.DataFrame, connections: pd.DataFrame) -> pd.DataFrame:
    """One row per consumer, the highest share of its prefetch first.

    Columns: `vhost`, `queue`, `tag`, `client`, `host`, `user`, `node`, `channel`, `prefetch` (NaN if unknown, 0 means
    no limit), `unacked` of its channel, `beside` (consumers on that channel, which share `unacked`), `held` (unacked
    messages in percent of the prefetch; NaN without a limit), `acks` (manual, automatic, "" if unknown), `hazard`
    (`UNLIMITED`, `AUTOMATIC` or ""), `active` (yes, no, "").
    """
    joined = consumers.merge(
        channels.add_prefix("channel."), how="left", left_on="channel_name", right_on="channel.name"
    ).merge(connections.add_prefix("connection."), how="left", left_on="connection_name", right_on="connection.name")

    def number(name: str) -> pd.Series:
        values: pd.Series = pd.to_numeric(joined[name], errors="coerce")
        return values

    prefetch, unacked = number("prefetch_count"), number("channel.messages_unacked")
    on_channel = number("channel.consumer_count")
    limit = prefetch.where(prefetch > 0) * on_channel.fillna(1).clip(lower=1)
    automatic = joined["ack_required"].eq(False)
    rows = pd.DataFrame(
        {
            "vhost": joined["vhost"],
            "queue": joined["queue"],
            "tag": joined["tag"],
            "client": _first(joined, "connection.client_name", "connection.client_product", "connection_name"),
            "host": _first(joined, "peer_host", "connection.peer_host"),
            "user": _first(joined, "user"),
            "node": _first(joined, "node"),
            "channel": _first(joined, "channel_name"),
            "prefetch": prefetch,
            "unacked": unacked,
            "beside": on_channel,
            "held": (100 * unacked / limit).where(~automatic),
            "acks": joined["ack_required"].map({True: "manual", False: "automatic"}).fillna(""),
            "active": joined["active"].map({True: "yes", False: "no"}).fillna(""),
        }
    )
    unlimited = prefetch.eq(0) & ~automatic
    rows["hazard"] = ""
    rows.loc[unlimited, "hazard"] = UNLIMITED
    rows.loc[automatic, "hazard"] = AUTOMATIC
    return rows.sort_values(["held", "unacked", "queue", "tag"], ascending=[False, False, True, True])


def _first(rows: pd.DataFrame, *names: str) -> pd.Series:
    """The first of these columns that is not empty; "" if all are."""
    found = rows[names[0]]
    for name in names[1:]:
        found = found.where(found.notna() & found.ne(""), rows[name])
    texts: pd.Series = found.fillna("").astype(str)
    return texts
