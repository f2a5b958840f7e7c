from dataclasses import replace

import pandas as pd

from ackscope.findings import Involved, Severity, Subject
from dashboard.frames import consumer_findings, consumer_rows
from tests.dashboard.answers import stuck

ROWS = pd.DataFrame(
    [
        ("/", "busy", "web", "k1", "c1"),
        ("/", "orders", "good", "k2", "c2"),
        ("/", "orders", "bad", "k3", "c3"),
        ("shop", "orders", "bad", "k4", "c4"),
    ],
    columns=["vhost", "queue", "client", "connection", "channel"],
)
ORDERS = Subject(kind="queue", name="orders", vhost="/")


def marked(*findings):
    """Channels and rules, in their order."""
    rows = consumer_findings.with_findings(ROWS, findings)
    return list(zip(rows["channel"], rows["finding"], strict=True))


def about(subject, rule="stuck-consumer", severity=Severity.CRITICAL, **involved):
    """A finding that involves these objects."""
    return replace(stuck(), rule=rule, severity=severity, subject=subject, involved=Involved(**involved))


def test_a_queue_finding_names_its_client_only():
    """Of the consumers of its queue; the client's consumers elsewhere are not meant. The worst come first."""
    assert [("c3", "stuck-consumer"), ("c1", ""), ("c2", ""), ("c4", "")] == marked(about(ORDERS, clients=("bad",)))


def test_a_queue_finding_without_a_consumer_names_all_of_the_queue():
    """Such as one that names publishers."""
    found = marked(about(ORDERS, "requeue-loop", clients=("publisher",)))

    assert [("c2", "requeue-loop"), ("c3", "requeue-loop"), ("c1", ""), ("c4", "")] == found


def test_connections_channels_and_clients():
    """By name, whatever they consume from, and a client within the virtual host; the most severe rule first."""
    one = about(Subject(kind="connection", name="k1"), "heartbeat-loss", Severity.WARNING)
    two = about(Subject(kind="vhost", name="shop", vhost="shop"), "channel-leak", Severity.INFO, clients=("bad",))
    three = about(Subject(kind="channel", name="c1"), "slow-consumer")

    assert [("c1", "slow-consumer, heartbeat-loss"), ("c4", "channel-leak"), ("c2", ""), ("c3", "")] == marked(
        two, one, three
    )


def test_a_full_consumer_that_acknowledges_is_only_busy():
    """One without any ack stands still; unknown rates are no proof of that."""
    names = list(consumer_rows.CONSUMER_COLUMNS)
    consumer = {"vhost": "/", "queue": "q", "prefetch_count": 10, "ack_required": True, "active": True}
    rates = {"stands": 0.0, "busy": 3.0, "unknown": None, "free": 0.0}
    rows = consumer_rows.consumer_rows(
        pd.DataFrame([{**dict.fromkeys(names), **consumer, "tag": it, "channel_name": it} for it in rates]),
        pd.DataFrame(
            [(it, 1, 1 if it == "free" else 10, rate) for it, rate in rates.items()],
            columns=list(consumer_rows.CHANNEL_COLUMNS),
        ),
        pd.DataFrame(columns=list(consumer_rows.CONNECTION_COLUMNS)),
    )

    assert {"stands": "full, no acks", "busy": "full", "unknown": "full", "free": ""} == dict(
        zip(rows["tag"], rows["limit"], strict=True)
    )
