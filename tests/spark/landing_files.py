"""Landing files as the exporter writes them, with rows that a test makes up."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.tables import (
    ACK_BURSTS,
    CHANNEL_SAMPLES,
    CONSUMER_SAMPLES,
    NODE_SAMPLES,
    OUTCOMES,
    POLL_SAMPLES,
    PROBE_MESSAGES,
    PROBE_STEPS,
    QUEUE_SAMPLES,
    Table,
)
from ackscope.tables.arrow import arrow_schema
from tests.spark.landing_followed import random_channels, random_consumers, random_nodes
from tests.spark.moments import EVERY, at


def write(root: Path, table: Table, rows: list[dict], name: str, cluster: str = "shop", day: str = "") -> Path:
    """Write one landing file; its date is that of its first row, or `day`."""
    folder = root / table.name / f"cluster={cluster}" / f"date={day or rows[0][table.time].date().isoformat()}"
    folder.mkdir(parents=True, exist_ok=True)
    temporary, path = folder / f".{name}", folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(table)), temporary)
    temporary.rename(path)
    return path


def message(seq: int, seconds: float, **changes) -> dict:
    """A message that was acked after 2 ms, meant for `seconds` after noon."""
    row = {
        "intended_at": at(seconds),
        "probe": "confirm",
        "stream": "quorum",
        "queue_type": "quorum",
        "vhost": "/",
        "node": "rabbit@one",
        "run_id": "run-1",
        "epoch": 1,
        "seq": seq,
        "delivery_mode": 2,
        "payload_bytes": 100,
        "outcome": "acked",
        "send_delay": 0.0001,
        "confirm": 0.002,
        "response": 0.0021,
        "multiple": False,
        "group": 1,
        "delivery": None,
        "deliveries": None,
        "redelivered": None,
        "out_of_order": None,
    }
    return row | changes


def burst(seconds: float, **changes) -> dict:
    """Three messages settled by one frame."""
    row = {
        "at": at(seconds),
        "probe": "confirm",
        "stream": "quorum",
        "queue_type": "quorum",
        "vhost": "/",
        "node": "rabbit@one",
        "run_id": "run-1",
        "frames": 1,
        "multiple_frames": 1,
        "messages": 3,
        "interval": 0.01,
        "span": 0.0,
    }
    return row | changes


def step(after: float, **changes) -> dict:
    """A TCP connection that was opened in 1 ms."""
    row = {
        "at": at(after),
        "probe": "handshake",
        "stream": "handshake",
        "vhost": "/",
        "node": "rabbit@one",
        "run_id": "run-1",
        "step": "tcp",
        "seconds": 0.001,
        "ok": True,
        "reason": None,
    }
    return row | changes


def sample(seconds: float, queue: str = "orders", **changes) -> dict:
    """A queue at rest, without statistics."""
    row = {
        "at": at(seconds),
        "vhost": "/",
        "queue": queue,
        "queue_type": "classic",
        "messages_ready": 0,
        "messages_unacked": 0,
        "consumers": 1,
        "publish": None,
        "deliver": None,
        "ack": None,
        "redeliver": None,
        "details_at": None,
        "gone": False,
    }
    return row | changes


def absent(seconds: float, queue: str = "orders") -> dict:
    """The queue was not there."""
    row = dict.fromkeys(sample(seconds))
    return row | {"at": at(seconds), "vhost": "/", "queue": queue, "gone": True}


def poll(seconds: float, **changes) -> dict:
    """All queues were read."""
    row = {
        "at": at(seconds),
        "family": "queues",
        "success": True,
        "took": 0.1,
        "age": 0.0,
        "objects": 3,
        "gaps": 0,
        "whole": False,
        "reason": None,
    }
    return row | changes


def random_messages(dice: random.Random, count: int, first: float, span: float) -> list[dict]:
    """Messages of several streams; durations from below the first bucket to above the last."""
    rows = []
    for seq in range(count):
        outcome = dice.choice(["acked"] * 6 + list(OUTCOMES))
        settled = outcome in {"acked", "nacked", "returned"}
        delivering = dice.random() < 0.5
        confirm = dice.choice([dice.lognormvariate(-6, 3), 50e-6, 60.0, 61.5]) if settled else None
        deliveries = dice.choice([0, 1, 1, 1, 2, 5]) if delivering else None
        rows.append(
            message(
                seq,
                first + dice.random() * span,
                probe="delivery" if delivering else "confirm",
                stream=dice.choice(["classic", "classic-large", "quorum"]),
                queue_type=dice.choice(["classic", "quorum", "stream"]),
                delivery_mode=dice.choice([1, 2]),
                run_id=dice.choice(["run-1", "run-2"]),
                outcome=outcome,
                send_delay=dice.expovariate(10_000),
                confirm=confirm,
                response=None if confirm is None else confirm + 0.0001,
                deliveries=deliveries,
                delivery=dice.expovariate(100) if deliveries else None,
                redelivered=dice.random() < 0.2 if deliveries else None,
                out_of_order=dice.random() < 0.1 if deliveries else None,
            )
        )
    return rows


def random_bursts(dice: random.Random, count: int, first: float, span: float) -> list[dict]:
    """Bursts of several streams."""
    return [
        burst(
            first + dice.random() * span,
            queue_type=dice.choice(["classic", "quorum"]),
            frames=dice.randint(1, 9),
            multiple_frames=dice.randint(0, 1),
            messages=dice.randint(1, 500),
            interval=dice.choice([None, dice.expovariate(10)]),
        )
        for _ in range(count)
    ]


def random_steps(dice: random.Random, count: int, first: float, span: float) -> list[dict]:
    """Steps, some of which fail, with and without a duration."""
    rows = []
    for _ in range(count):
        ok = dice.random() < 0.8
        rows.append(
            step(
                first + dice.random() * span,
                step=dice.choice(["tcp", "tls"]),
                seconds=dice.expovariate(100) if ok or dice.random() < 0.5 else None,
                ok=ok,
                reason=None if ok else "refused",
            )
        )
    return rows


def random_samples(dice: random.Random, queues: int, first: float, span: float) -> list[dict]:
    """Changes of several queues, whose counters begin late, reset, are read late, or not; some queues are deleted."""
    rows = []
    for number in range(queues):
        name, counters, counted_at = f"queue-{number}", dict.fromkeys(("publish", "deliver", "ack", "redeliver")), None
        for poll_at in range(int(first), int(first + span), EVERY):
            if dice.random() < 0.6:  # nothing changed, or nothing was landed
                continue
            if dice.random() < 0.05:
                rows.append(absent(poll_at, name))
                counters = dict.fromkeys(counters)
                continue
            late = dice.random() < 0.3
            if not late or counted_at is None:
                counted_at = poll_at - dice.choice([0, 1, 7]) if late else poll_at
                for counter, value in counters.items():
                    if dice.random() < 0.4:
                        counters[counter] = (value or 0) + dice.randint(0, 5000)
                    elif dice.random() < 0.05:
                        counters[counter] = dice.choice([None, 0, 3])
            read_counters = counters if dice.random() < 0.9 else dict.fromkeys(counters)
            level = {
                "messages_ready": dice.choice([None, dice.randint(0, 900)]),
                "messages_unacked": dice.randint(0, 9),
                "consumers": dice.choice([None, dice.randint(0, 3)]),
            }
            details_at = None if counted_at == poll_at else at(counted_at)
            rows.append(sample(poll_at, name, **read_counters, **level, details_at=details_at))
    return rows


def random_polls(dice: random.Random, first: float, span: float) -> list[dict]:
    """Polls, some of which fail, sometimes for minutes; of other families, too; the first is whole."""
    rows, away = [], 0
    for number, poll_at in enumerate(range(int(first), int(first + span), EVERY)):
        away = dice.randint(5, 20) if dice.random() < 0.01 else away - 1
        success = away < 0 and dice.random() < 0.9
        rows.append(poll(poll_at, success=success, whole=success and (number == 0 or dice.random() < 0.01)))
        rows.append(poll(poll_at + 1, family="nodes", whole=True, took=dice.random(), gaps=dice.choice([None, 0, 3])))
        for family in ("channels", "consumers"):
            success, whole = dice.random() < 0.9, dice.random() < 0.01
            rows.append(poll(poll_at, family=family, success=success, whole=success and whole, objects=number))
    return rows


TABLES = {
    PROBE_MESSAGES: lambda dice, first, span: random_messages(dice, 600, first, span),
    ACK_BURSTS: lambda dice, first, span: random_bursts(dice, 200, first, span),
    PROBE_STEPS: lambda dice, first, span: random_steps(dice, 200, first, span),
    QUEUE_SAMPLES: lambda dice, first, span: random_samples(dice, 3, first, span),
    POLL_SAMPLES: random_polls,
    CHANNEL_SAMPLES: random_channels,
    CONSUMER_SAMPLES: random_consumers,
    NODE_SAMPLES: random_nodes,
}


def write_random(root: Path, seed: int, first: float = 0.0, span: float = 5400.0) -> dict[Table, list[dict]]:
    """One file of random rows of each table, and the rows."""
    dice = random.Random(seed)
    made = {table: make(dice, first, span) for table, make in TABLES.items()}
    for table, rows in made.items():
        write(root, table, rows, f"random-{seed}")
    return made
