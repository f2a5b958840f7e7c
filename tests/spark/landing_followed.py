"""Landing rows of channels, consumers and nodes that a test makes up."""

import random

from ackscope.tables import NODE_SAMPLES
from tests.spark.moments import EVERY, at


def channel(seconds: float, name: str = "one", **changes) -> dict:
    """A channel at rest with one consumer and room for ten messages, without statistics."""
    row = {
        "at": at(seconds),
        "channel": name,
        "connection": f"connection of {name}",
        "vhost": "/",
        "user": "shop",
        "node": "rabbit@one",
        "state": "running",
        "prefetch_count": 10,
        "consumers": 1,
        "messages_unacked": 0,
        "messages_unconfirmed": 0,
        "publish": None,
        "confirm": None,
        "deliver": None,
        "ack": None,
        "redeliver": None,
        "gone": False,
    }
    return row | changes


def consumer(seconds: float, tag: str = "one", **changes) -> dict:
    """A consumer that gets messages and acknowledges them."""
    row = {
        "at": at(seconds),
        "vhost": "/",
        "queue": "orders",
        "tag": tag,
        "channel": "one",
        "connection": "connection of one",
        "user": "shop",
        "node": "rabbit@one",
        "prefetch_count": 10,
        "ack_required": True,
        "active": True,
        "activity_status": "up",
        "gone": False,
    }
    return row | changes


def node(seconds: float, name: str = "rabbit@one", **changes) -> dict:
    """A node at ease."""
    row = dict.fromkeys(NODE_SAMPLES.names) | {"at": at(seconds), "node": name, "running": True, "mem_used": 100}
    return row | changes


def no_more(row: dict, *key: str) -> dict:
    """The object of a row is followed no more."""
    return dict.fromkeys(row) | {name: row[name] for name in key} | {"at": row["at"], "gone": True}


def random_channels(dice: random.Random, first: float, span: float, count: int = 3) -> list[dict]:
    """Changes of several channels, whose counters begin late, reset, or are unknown; some close and reappear."""
    rows = []
    for number in range(count):
        name, counters = f"channel-{number}", dict.fromkeys(("publish", "confirm", "deliver", "ack", "redeliver"))
        for poll_at in range(int(first), int(first + span), EVERY):
            if dice.random() < 0.6:
                continue
            for counter, value in counters.items():
                if dice.random() < 0.4:
                    counters[counter] = (value or 0) + dice.randint(0, 5000)
                elif dice.random() < 0.05:
                    counters[counter] = dice.choice([None, 0, 3])
            row = channel(
                poll_at,
                name,
                prefetch_count=dice.choice([None, 0, 5, 10]),
                consumers=dice.choice([None, 0, 1, 2]),
                messages_unacked=dice.choice([None, 0, 5, 10, 20]),
                messages_unconfirmed=dice.choice([None, dice.randint(0, 9)]),
                **(counters if dice.random() < 0.9 else dict.fromkeys(counters)),
            )
            rows.append(no_more(row, "channel") if dice.random() < 0.05 else row)
    return rows


def random_consumers(dice: random.Random, first: float, span: float, count: int = 3) -> list[dict]:
    """Changes of several consumers; some go and come back."""
    rows = []
    for number in range(count):
        for poll_at in range(int(first), int(first + span), EVERY):
            if dice.random() < 0.7:
                continue
            row = consumer(
                poll_at,
                f"tag-{number}",
                queue=f"queue-{number % 2}",
                channel=dice.choice(["", "one"]),
                prefetch_count=dice.choice([None, 0, 10]),
                ack_required=dice.choice([None, True, False]),
                active=dice.choice([None, True, False]),
            )
            rows.append(no_more(row, "vhost", "queue", "tag", "channel") if dice.random() < 0.05 else row)
    return rows


def random_nodes(dice: random.Random, first: float, span: float) -> list[dict]:
    """Samples of two nodes; each column is sometimes null."""
    rows = []
    flags = ("running", "being_drained", "mem_alarm", "disk_free_alarm")
    for poll_at in range(int(first), int(first + span), EVERY):
        for name in ("rabbit@one", "rabbit@two"):
            row = {column.name: dice.choice([None, dice.randint(0, 10**12)]) for column in NODE_SAMPLES.columns}
            row |= {flag: dice.choice([None, True, False]) for flag in flags}
            rows.append(row | {"at": at(poll_at), "node": name, "uptime_seconds": dice.choice([None, poll_at + 0.5])})
    return rows
