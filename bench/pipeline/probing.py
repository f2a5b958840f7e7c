"""Simulated probe messages: latency and outcome, depending on disk, network and nodes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ackscope import latency
from ackscope.tables import LATENCY_1M, OUTCOMES, OUTCOMES_1M, PROBE_MESSAGES
from bench.pipeline.cluster import Bools, Floats, Ints
from bench.pipeline.columns import ordered
from bench.pipeline.incident_plan import AffectedObject
from bench.pipeline.simulation import DAY, SimulatedSteps

_VHOST = "ackscope"
_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class SimulatedStream:
    """One stream of a probe.

    Attributes:
        mode: delivery mode, 1 transient, 2 persistent.
        synced: its confirm waits for a disk.
        rate: messages per second.
        usual: median on a quiet day, seconds.
    """

    probe: str
    stream: str
    queue_type: str
    mode: int
    synced: bool
    rate: float
    usual: float


# The default streams of the probes.
STREAMS = (
    SimulatedStream("confirm", "unroutable", "none", 1, synced=False, rate=1.0, usual=0.0004),
    SimulatedStream("confirm", "transient", "classic", 1, synced=False, rate=1.0, usual=0.0006),
    SimulatedStream("confirm", "classic", "classic", 2, synced=True, rate=5.0, usual=0.0011),
    SimulatedStream("confirm", "classic-large", "classic", 2, synced=True, rate=1.0, usual=0.0018),
    SimulatedStream("confirm", "quorum", "quorum", 2, synced=True, rate=5.0, usual=0.0024),
    SimulatedStream("confirm", "stream", "stream", 2, synced=False, rate=1.0, usual=0.0013),
    SimulatedStream("delivery", "classic", "classic", 2, synced=True, rate=1.0, usual=0.0012),
    SimulatedStream("delivery", "quorum", "quorum", 2, synced=True, rate=1.0, usual=0.0026),
)


@dataclass(frozen=True, slots=True)
class SimulatedMessages:
    """Messages of one stream, sorted by scheduled time; durations in seconds, NaN if there is none.

    Attributes:
        outcome: index into `OUTCOMES`.
        deliveries: -1 if none are expected.
    """

    send_delay: Floats
    confirm: Floats
    delivery: Floats
    outcome: Ints
    deliveries: Ints

    def measures(self) -> dict[str, Floats]:
        """Return the durations by the names of `latency_1m.measure`."""
        return {
            "confirm": self.confirm,
            "response": self.confirm + self.send_delay,
            "delivery": self.delivery,
            "send_delay": self.send_delay,
        }


def draw(
    dice: np.random.Generator, stream: SimulatedStream, hour: Floats, disk: Floats, network: Floats, well: Bools
) -> SimulatedMessages:
    """Return one message per element, for this hour of the day, disk and network; `well`: the node accepts messages."""
    count = len(hour)
    load = 1 + 0.25 * np.cos(2 * np.pi * (hour - 14) / 24)
    slow = np.where(dice.random(count, np.float32) < 0.004, dice.uniform(4, 25, count), 1.0)
    spread = np.exp(dice.standard_normal(count, np.float32) * 0.35).astype(np.float64)
    confirm = stream.usual * load * spread * slow * (disk if stream.synced else 1.0) + network
    chance = dice.random(count)
    outcome = np.where(well, np.select([chance < 1e-5, chance < 2e-5, chance < 3e-5], [4, 1, 3], 0), 3)
    confirm = np.where((outcome < 3) & (confirm < _TIMEOUT), confirm, np.nan)
    awaited, there = stream.probe == "delivery", outcome == 0
    again = 1 + (dice.random(count) < 2e-5)
    deliveries = np.where(awaited, np.where(there, again, 0), -1)
    later = confirm + dice.exponential(0.0004, count) + network
    delivery = np.where(awaited & there, later, np.nan)
    return SimulatedMessages(dice.exponential(6e-5, count), confirm, delivery, outcome, deliveries)


def home(number: int, nodes: int) -> int:
    """Return the node of a stream, by its index in `STREAMS`."""
    return number % nodes


def subjects(node_names: list[str], *, synced: bool | None = None, node: int = -1) -> list[AffectedObject]:
    """Return the streams as objects: only those that wait for a disk if `synced`, only those of `node` if given."""
    return [
        AffectedObject(
            "probe", "", f"{it.probe}/{it.stream}/{node_names[home(number, len(node_names))]}", "confirm_p50"
        )
        for number, it in enumerate(STREAMS)
        if (synced is None or it.synced == synced) and node in {-1, home(number, len(node_names))}
    ]


# ------------------------------------------------------------ as minutes


def minutes(dice: np.random.Generator, stretch: SimulatedSteps, node_names: list[str]) -> dict[str, pa.Table]:
    """Return rows of `latency_1m` and `outcomes_1m`; the steps are minutes."""
    seen = np.flatnonzero(~stretch.away)
    latencies, outcomes = [], []
    for number, stream in enumerate(STREAMS):
        node = home(number, len(node_names))
        each = round(stream.rate * stretch.step)
        step = np.repeat(seen, each)
        hour = (stretch.first + step * stretch.step) % DAY / 3600
        well = stretch.up[step, node] & ~stretch.blocked[step]
        drawn = draw(dice, stream, hour, stretch.disk[step], stretch.network[step], well)
        columns_of_stream = _stream_columns(stream, node_names[node])
        at = (stretch.first + np.arange(len(stretch)) * stretch.step) * 1_000_000
        outcomes.append(_outcomes(drawn, step, len(stretch), at, columns_of_stream))
        for measure, values in drawn.measures().items():
            latencies.append(_histograms(values, step, len(stretch), at, {**columns_of_stream, "measure": measure}))
    return {LATENCY_1M.name: pa.concat_tables(latencies), OUTCOMES_1M.name: pa.concat_tables(outcomes)}


def _stream_columns(stream: SimulatedStream, node: str) -> dict[str, str | int]:
    return {
        "probe": stream.probe,
        "stream": stream.stream,
        "queue_type": stream.queue_type,
        "vhost": _VHOST,
        "node": node,
        "delivery_mode": stream.mode,
    }


def _histograms(values: Floats, step: Ints, steps: int, at: Ints, columns_of_stream: dict[str, str | int]) -> pa.Table:
    there = np.isfinite(values)
    values, step = values[there], step[there]
    bucket = np.searchsorted(np.array(latency.EDGES), values, side="left")
    counts = np.bincount(step * latency.BUCKETS + bucket, minlength=steps * latency.BUCKETS)
    counts = counts.reshape(steps, latency.BUCKETS)
    total = np.bincount(step, np.rint(values * 1e9), steps) / 1e9
    most = np.zeros(steps)
    np.maximum.at(most, step, values)
    rows = np.flatnonzero(counts.sum(axis=1))
    columns = {
        "minute": pa.array(at[rows], pa.timestamp("us", tz="UTC")),
        **_constants(columns_of_stream, len(rows)),
        "bounds": pa.repeat(latency.BOUNDS_VERSION, len(rows)),
        "count": pa.array(counts[rows].sum(axis=1)),
        "sum": pa.array(total[rows]),
        "max": pa.array(most[rows]),
        **{name: pa.array(counts[rows, index]) for index, name in enumerate(latency.COLUMNS)},
    }
    return ordered(LATENCY_1M, columns)


def _outcomes(
    drawn: SimulatedMessages, step: Ints, steps: int, at: Ints, columns_of_stream: dict[str, str | int]
) -> pa.Table:
    def count(which: Bools) -> Ints:
        return np.bincount(step[which], minlength=steps)

    messages = np.bincount(step, minlength=steps)
    rows = np.flatnonzero(messages)
    zero = np.zeros(steps, dtype=np.int64)
    counts = {
        "messages": messages,
        **{name: count(drawn.outcome == index) for index, name in enumerate(OUTCOMES)},
        "redelivered": count(drawn.deliveries > 1),
        "duplicates": count(drawn.deliveries > 1),
        "out_of_order": zero,
        "missing": zero,
    }
    columns = {
        "minute": pa.array(at[rows], pa.timestamp("us", tz="UTC")),
        **_constants(columns_of_stream, len(rows)),
        **{name: pa.array(values[rows]) for name, values in counts.items()},
    }
    return ordered(OUTCOMES_1M, columns)


def _constants(columns_of_stream: dict[str, str | int], rows: int) -> dict[str, pa.Array]:
    return {name: pa.repeat(pa.scalar(value), rows) for name, value in columns_of_stream.items()}


# ------------------------------------------------------------ as landing rows


def messages(
    dice: np.random.Generator, stretch: SimulatedSteps, node_names: list[str], run_id: str, times: float = 1.0
) -> pa.Table:
    """Return rows of `probe_messages` in order of settlement, at `times` the usual rates."""
    parts: dict[str, list[np.ndarray]] = {}
    for number, stream in enumerate(STREAMS):
        node, rate = home(number, len(node_names)), stream.rate * times
        span, since = len(stretch) * stretch.step, round(stretch.first % DAY * rate)
        after = np.arange(round(span * rate)) / rate
        step = np.minimum((after / stretch.step).astype(np.int64), len(stretch) - 1)
        # Probes continue while nobody polls the broker.
        hour = (stretch.first + after) % DAY / 3600
        well = stretch.up[step, node] & ~stretch.blocked[step]
        drawn = draw(dice, stream, hour, stretch.disk[step], stretch.network[step], well)
        part = {
            "intended_at": np.rint((stretch.first + after) * 1e6).astype(np.int64),
            "number": np.full(len(after), number),
            "seq": since + 1 + np.arange(len(after)),
            "send_delay": drawn.send_delay,
            "confirm": drawn.confirm,
            "delivery": drawn.delivery,
            "outcome": drawn.outcome,
            "deliveries": drawn.deliveries,
        }
        for name, values in part.items():
            parts.setdefault(name, []).append(values)
    whole = {name: np.concatenate(values) for name, values in parts.items()}
    late = np.nan_to_num(whole["confirm"], nan=_TIMEOUT)
    order = np.argsort(whole["intended_at"] + late * 1e6, kind="stable")
    return _message_table(
        dice, {name: values[order] for name, values in whole.items()}, node_names, f"{run_id}-{stretch.first // DAY}"
    )


def _message_table(dice: np.random.Generator, rows: dict[str, np.ndarray], nodes: list[str], run_id: str) -> pa.Table:
    count, number = len(rows["seq"]), rows["number"]
    awaited = rows["deliveries"] >= 0
    unsettled = np.isnan(rows["confirm"])
    came = rows["deliveries"] > 0

    def by_stream(values: list[str] | list[int]) -> pa.Array:
        return pa.array(values).take(pa.array(number))

    def known(values: np.ndarray, absent: Bools) -> pa.Array:
        return pa.array(values, mask=absent)

    columns = {
        "intended_at": pa.array(rows["intended_at"], pa.timestamp("us", tz="UTC")),
        "probe": by_stream([it.probe for it in STREAMS]),
        "stream": by_stream([it.stream for it in STREAMS]),
        "queue_type": by_stream([it.queue_type for it in STREAMS]),
        "vhost": pa.repeat(_VHOST, count),
        "node": by_stream([nodes[home(index, len(nodes))] for index in range(len(STREAMS))]),
        "run_id": pa.repeat(run_id, count),
        "epoch": pa.repeat(pa.scalar(1, pa.int64()), count),
        "seq": pa.array(rows["seq"]),
        "delivery_mode": by_stream([it.mode for it in STREAMS]),
        "payload_bytes": by_stream([4096 if it.stream == "classic-large" else 100 for it in STREAMS]),
        "outcome": pa.array(list(OUTCOMES)).take(pa.array(rows["outcome"])),
        "send_delay": pa.array(rows["send_delay"]),
        "confirm": known(rows["confirm"], unsettled),
        "response": known(rows["confirm"] + rows["send_delay"], unsettled),
        "multiple": known(dice.random(count) < 0.2, unsettled),
        "group": known(dice.integers(1, 8, count), unsettled),
        "delivery": known(rows["delivery"], np.isnan(rows["delivery"])),
        "deliveries": known(rows["deliveries"], ~awaited),
        "redelivered": known(rows["deliveries"] > 1, ~came),
        "out_of_order": known(np.zeros(count, dtype=np.bool_), ~came),
    }
    return ordered(PROBE_MESSAGES, columns)
