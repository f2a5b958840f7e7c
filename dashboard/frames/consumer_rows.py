"""Consumers as table rows: unacked messages and prefetch limit of each. Pure."""

import pandas as pd

from ackscope.protocols import AMQP10, STREAM, native_protocol
from dashboard.frames.client_names import client_names

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
    "session_number",
    "credit",
    "unsettled",
    "offset_lag",
)
CHANNEL_COLUMNS = ("name", "consumer_count", "messages_unacked", "lately.ack")
CONNECTION_COLUMNS = ("name", "client_name", "user", "peer_host", "protocol")

UNLIMITED, AUTOMATIC = "no limit", "automatic ack"
FULL, STANDS_STILL = "full", "full, no acks"

_FULL_PERCENT = 90.0
"""A consumer counts as full from this percentage of its prefetch."""
_LEAST_ACKED = 0.005
"""Messages per second below which nothing is acknowledged."""


def consumer_rows(consumers: pd.DataFrame, channels: pd.DataFrame, connections: pd.DataFrame) -> pd.DataFrame:
    """One row per consumer, the highest share of its prefetch first.

    Columns: `vhost`, `queue`, `tag`, `client`, `host`, `user`, `node`, `channel`, `connection`, `prefetch` (NaN if
    unknown, 0 means no limit), `unacked` of its channel, `beside` (consumers on that channel, which share `unacked`),
    `held` (unacked messages in percent of the prefetch; NaN without a limit), `acked` (messages per second on its
    channel over about the last 30 s; NaN if unknown), `limit` (`STANDS_STILL`: at its prefetch without any ack, `FULL`:
    at its prefetch and busy, or it is unknown; else ""), `acks` (manual, automatic, "" if unknown), `hazard`
    (`UNLIMITED`, `AUTOMATIC` or ""), `active` (yes, no, ""), `protocol` (`AMQP10`, `MQTT`, `STREAM`, or "" for AMQP
    0-9-1), `credit` (messages that an AMQP 1.0 consumer asked for, or chunks of a `STREAM` consumer; NaN for others),
    `lag` (messages from the offset of a `STREAM` consumer to the end; NaN for others). Consumers of these protocols
    have no channel. With AMQP 1.0 there is no prefetch, and `unacked` is what is not settled; a reader of a stream
    settles nothing.
    """
    joined = consumers.merge(
        channels.add_prefix("channel."), how="left", left_on="channel_name", right_on="channel.name"
    ).merge(
        connections.assign(client=client_names(connections)).add_prefix("connection."),
        how="left",
        left_on="connection_name",
        right_on="connection.name",
    )

    def number(name: str) -> pd.Series:
        values: pd.Series = pd.to_numeric(joined[name], errors="coerce")
        return values

    names = joined["connection.protocol"].fillna("").astype(str)
    protocol = names.map(lambda name: native_protocol(name) or "").astype(object)
    protocol = protocol.mask(number("session_number").notna(), AMQP10)
    reads = protocol.eq(STREAM)
    prefetch = number("prefetch_count").mask(protocol.eq(AMQP10) | reads)
    unacked = number("channel.messages_unacked").fillna(number("unsettled"))
    on_channel = number("channel.consumer_count")
    limit = prefetch.where(prefetch > 0) * on_channel.fillna(1).clip(lower=1)
    automatic = joined["ack_required"].eq(False) & ~reads
    rows = pd.DataFrame(
        {
            "vhost": joined["vhost"],
            "queue": joined["queue"],
            "tag": joined["tag"],
            "client": _first(joined, "connection.client", "connection_name"),
            "host": _first(joined, "peer_host", "connection.peer_host"),
            "user": _first(joined, "user"),
            "node": _first(joined, "node"),
            "channel": _first(joined, "channel_name"),
            "connection": _first(joined, "connection_name"),
            "prefetch": prefetch,
            "unacked": unacked,
            "beside": on_channel,
            "held": (100 * unacked / limit).where(~automatic),
            "acked": number("channel.lately.ack"),
            "acks": joined["ack_required"].map({True: "manual", False: "automatic"}).fillna("").mask(reads, ""),
            "active": joined["active"].map({True: "yes", False: "no"}).fillna(""),
            "protocol": protocol,
            "credit": number("credit"),
            "lag": number("offset_lag"),
        }
    )
    full = rows["held"] >= _FULL_PERCENT
    rows["limit"] = ""
    rows.loc[full, "limit"] = FULL
    rows.loc[full & (rows["acked"] < _LEAST_ACKED), "limit"] = STANDS_STILL
    unlimited = prefetch.eq(0) & ~automatic
    rows["hazard"] = ""
    rows.loc[unlimited, "hazard"] = UNLIMITED
    rows.loc[automatic, "hazard"] = AUTOMATIC
    order = ["held", "unacked", "lag", "queue", "tag"]
    return rows.sort_values(order, ascending=[False, False, False, True, True])


def none() -> pd.DataFrame:
    """No consumers, with all columns."""
    lists = (CONSUMER_COLUMNS, CHANNEL_COLUMNS, CONNECTION_COLUMNS)
    return consumer_rows(*(pd.DataFrame({column: pd.Series(dtype=object) for column in it}) for it in lists))


def _first(rows: pd.DataFrame, *names: str) -> pd.Series:
    """The first of these columns that is not empty; "" if all are."""
    found = rows[names[0]]
    for name in names[1:]:
        found = found.where(found.notna() & found.ne(""), rows[name])
    texts: pd.Series = found.fillna("").astype(str)
    return texts


def prefetch_rows(rows: pd.DataFrame, shown: int = 10) -> pd.DataFrame:
    """One row per channel, the fullest first, at most `shown`; from rows of `consumer_rows`.

    Columns: `who` (client, and number of consumers), `tags`, `unacked` (NaN if unknown), `ceiling` (prefetch of all
    consumers of the channel together; NaN without a limit), `why` (why there is no ceiling).
    """
    found = []
    named = rows.assign(channel=rows["channel"].where(rows["channel"] != "", rows["client"] + " " + rows["tag"]))
    for _, mine in named.groupby("channel", sort=False):
        first = mine.iloc[0]
        on_channel = 1.0 if pd.isna(first["beside"]) else max(float(first["beside"]), 1.0)
        why = first["hazard"] or first["protocol"] or ("" if first["prefetch"] > 0 else "prefetch unknown")
        found.append(
            {
                "who": first["client"] if len(mine) == 1 else f"{first['client']} ({len(mine)} consumers)",
                "tags": ", ".join(mine["tag"]),
                "unacked": first["unacked"],
                "ceiling": first["prefetch"] * on_channel if first["prefetch"] > 0 and not why else float("nan"),
                "why": why,
            }
        )
    return pd.DataFrame(found[:shown], columns=["who", "tags", "unacked", "ceiling", "why"])
