"""Connections as rows: who is connected, and what all its channels do together."""

import pandas as pd
import pytest

from dashboard.frames.connection_rows import CHANNEL_COLUMNS, COLUMNS, connection_rows


def frame(columns, *rows):
    """Return the columns of the exporter; what a row does not say is None."""
    return pd.DataFrame(
        [{name: row.get(name) for name in columns} for row in rows], columns=list(columns), dtype=object
    )


CONNECTIONS = frame(
    COLUMNS,
    {"name": "10.1.1.1:5 -> b", "client_name": "till", "peer_host": "10.1.1.1", "channels": 2, "connected_at": 9.0},
    {"name": "10.1.1.2:5 -> b", "client_name": "worker", "peer_host": "10.1.1.2", "user": "ann", "channels": 1},
    {"name": "mqtt", "client_name": "Sensor", "protocol": "MQTT 3.1.1", "channels": 0},
)
CHANNELS = frame(
    CHANNEL_COLUMNS,
    {"connection_name": "10.1.1.1:5 -> b", "lately.publish": 3.0, "messages_unacked": 0},
    {"connection_name": "10.1.1.1:5 -> b", "lately.publish": 4.0, "messages_unacked": 1},
    {"connection_name": "10.1.1.2:5 -> b", "lately.publish": 9.0, "lately.ack": 2.0, "messages_unacked": 5},
)


@pytest.mark.parametrize(
    ("text", "clients"),
    [("", ["worker", "till", "Sensor"]), ("1.1.1", ["till"]), ("ANN", ["worker"]), ("sens", ["Sensor"]), ("[", [])],
)
def test_connections_are_found_by_their_names(text, clients):
    """By a part of client, connection, host, user or vhost in any case; the busiest first."""
    assert clients == list(connection_rows(CONNECTIONS, CHANNELS, text)["client"])


def test_all_channels_of_a_connection_count_together():
    """What is unknown of one channel, and of a protocol without channels, is not 0."""
    rows = connection_rows(CONNECTIONS, CHANNELS, "").set_index("client")

    assert (7.0, 1) == tuple(rows.loc["till", ["published", "unacked"]])
    assert (2.0, 5) == tuple(rows.loc["worker", ["acked", "unacked"]])
    assert rows.loc["till", ["delivered", "acked"]].isna().all()
    assert rows.loc["Sensor", ["published", "delivered", "acked", "unacked"]].isna().all()


def test_without_channels_nothing_is_known_of_them():
    """An exporter that has not read them yet."""
    rows = connection_rows(CONNECTIONS, frame(CHANNEL_COLUMNS), "till")

    assert [2] == list(rows["channels"])
    assert rows["published"].isna().all()
