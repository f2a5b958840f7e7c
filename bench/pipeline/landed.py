"""A simulated cluster as landing rows: what the exporter would have written, poll by poll.

Queues, channels and consumers are tables of changes: a row at a change, one of the poll before it, a heartbeat, and a
tombstone (`ackscope.tables.QUEUE_SAMPLES`).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ackscope.tables import (
    CHANNEL_SAMPLES,
    CONSUMER_SAMPLES,
    HEARTBEAT,
    NODE_SAMPLES,
    POLL_SAMPLES,
    QUEUE_SAMPLES,
)
from bench.pipeline.cluster import Bools, ClusterShape, Ints
from bench.pipeline.columns import named, ordered
from bench.pipeline.minutes import USER, channel_names, followed, node_figures
from bench.pipeline.simulation import SimulatedSteps

_COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}


@dataclass(frozen=True, slots=True)
class _Picked:
    """Rows to land: poll and object of each, and whether it is a tombstone."""

    poll: Ints
    thing: Ints
    removed: Bools


class _Changes:
    """Decides which objects get a row at which poll; remembers the previous poll."""

    def __init__(self) -> None:
        self._last: tuple[Ints, Bools, Bools, int] | None = None
        self._polls = 0

    def pick(self, values: Ints, there: Bools, at: Ints, step: int) -> tuple[_Picked, Ints, Ints]:
        """Rows of some polls, with the polls and values that their indexes refer to: the first is the last poll before.

        Args:
            values: (polls, objects, columns).
            there: (polls, objects).
            at: microseconds of every poll.
            step: seconds between polls.
        """
        beat = max(1, round(0.9 * HEARTBEAT / step))
        turn = (self._polls + np.arange(len(at)))[:, None] % beat == np.arange(there.shape[1]) % beat
        self._polls += len(at)
        whole = self._last is None
        if self._last is None:
            before, was, landed, then = values[:1], there[:1], there[:1], int(at[0])
        else:
            before, was, landed, then = self._last
        values, there = np.concatenate([before, values]), np.concatenate([was, there])
        differs = (values[1:] != values[:-1]).any(axis=2)
        came, left = there[1:] & ~there[:-1], there[:-1] & ~there[1:]
        now = there[1:] & (differs | turn | came)
        if whole:
            now[0] |= there[1]
        landed = np.concatenate([landed, now])
        earlier = there[:-1] & there[1:] & differs & ~landed[:-1]
        here = np.concatenate([np.zeros_like(now[:1]), now])
        here[:-1] |= earlier
        removed = np.zeros_like(here)
        removed[1:] |= left
        removed[:-1] |= came
        poll, thing = np.nonzero(here | removed)
        self._last = values[-1:], there[-1:], landed[-1:], int(at[-1])
        return _Picked(poll, thing, removed[poll, thing]), np.concatenate([[then], at]), values


class LandingRows:
    """The landing rows of one cluster, in order.

    Args:
        shape: the cluster.
    """

    def __init__(self, shape: ClusterShape) -> None:
        self._shape, self._which = shape, followed(shape)
        self._queues, self._channels, self._consumers = _Changes(), _Changes(), _Changes()
        self._counted = np.zeros((len(_COUNTERS), len(shape)), dtype=np.int64)
        self._was: Bools = np.zeros((1, len(shape)), dtype=np.bool_)

    def rows(self, dice: np.random.Generator, stretch: SimulatedSteps) -> dict[str, pa.Table]:
        """Return rows by table name; there are none in gaps without polls."""
        seen = np.flatnonzero(~stretch.away)
        counters = self._counters(stretch)
        if not len(seen):
            return {}
        # The broker's response is complete a little later each time.
        late = dice.integers(200_000, 900_000, len(seen))
        at = (stretch.first + seen * stretch.step) * 1_000_000 + late
        return {
            QUEUE_SAMPLES.name: self._queue_rows(stretch, seen, at, counters[seen]),
            CHANNEL_SAMPLES.name: self._channel_rows(stretch, seen, at, counters[seen]),
            CONSUMER_SAMPLES.name: self._consumer_rows(stretch, seen, at),
            NODE_SAMPLES.name: self._node_rows(dice, stretch, seen, at),
            POLL_SAMPLES.name: self._poll_rows(at, whole=self._queues_begin),
        }

    def _counters(self, stretch: SimulatedSteps) -> Ints:
        """Return (steps, queues, counters); a queue that is declared again counts from zero."""
        there = np.concatenate([self._was, stretch.there])
        came = there[1:] & ~there[:-1]
        self._queues_begin = not self._was.any()
        self._was = there[-1:]
        found = []
        for index, name in enumerate(_COUNTERS.values()):
            grown = np.cumsum(getattr(stretch, name), axis=0) + self._counted[index]
            begin = np.where(came, np.concatenate([self._counted[index][None], grown[:-1]]), 0)
            counted = grown - np.maximum.accumulate(begin, axis=0)
            self._counted[index] = counted[-1]
            found.append(counted)
        return np.stack(found, axis=2)

    def _queue_rows(self, stretch: SimulatedSteps, seen: Ints, at: Ints, counters: Ints) -> pa.Table:
        shape = self._shape
        levels = np.stack([stretch.ready[seen], stretch.unacked[seen], stretch.consumers[seen]], axis=2)
        values = np.concatenate([levels, counters], axis=2)
        rows, moments, values = self._queues.pick(values, stretch.there[seen], at, stretch.step)
        row_values = values[rows.poll, rows.thing]
        names = ("messages_ready", "messages_unacked", "consumers", *_COUNTERS)
        columns = {
            "at": _moment(moments[rows.poll]),
            "vhost": named(shape.vhosts, rows.thing),
            "queue": named(shape.names, rows.thing),
            "queue_type": named(shape.types, rows.thing),
            **{name: pa.array(row_values[:, index], mask=rows.removed) for index, name in enumerate(names)},
            "gone": pa.array(rows.removed),
        }
        return ordered(QUEUE_SAMPLES, columns)

    def _channel_rows(self, stretch: SimulatedSteps, seen: Ints, at: Ints, counters: Ints) -> pa.Table:
        which, shape = self._which, self._shape
        consumers = np.maximum(stretch.consumers[seen][:, which], 1)
        levels = [stretch.prefetch[seen][:, which], -(-stretch.unacked[seen][:, which] // consumers)]
        generation = stretch.generation[seen][:, which]
        own = [counters[:, which, index] // consumers for index in range(1, len(_COUNTERS))]
        there = stretch.there[seen][:, which] & (stretch.consumers[seen][:, which] > 0)
        rows, moments, values = self._channels.pick(np.stack([generation, *levels, *own], 2), there, at, stretch.step)
        row_values = values[rows.poll, rows.thing]
        name = pa.array(channel_names(which[rows.thing], row_values[:, 0]), pa.string())
        columns = {
            "at": _moment(moments[rows.poll]),
            "channel": name,
            "connection": name,
            "vhost": named(shape.vhosts, which[rows.thing]),
            "user": pa.repeat(USER, len(rows.poll)),
            "node": named(shape.node_names, shape.node[which[rows.thing]]),
            "state": pa.repeat("running", len(rows.poll)),
            **{
                key: pa.array(row_values[:, index], mask=rows.removed)
                for index, key in ((1, "prefetch_count"), (2, "messages_unacked"), (3, "deliver"), (4, "ack"))
            },
            "redeliver": pa.array(row_values[:, 5], mask=rows.removed),
            "gone": pa.array(rows.removed),
        }
        return ordered(CHANNEL_SAMPLES, columns)

    def _consumer_rows(self, stretch: SimulatedSteps, seen: Ints, at: Ints) -> pa.Table:
        which, shape = self._which, self._shape
        values = np.stack([stretch.generation[seen][:, which], stretch.prefetch[seen][:, which]], 2)
        there = stretch.there[seen][:, which] & (stretch.consumers[seen][:, which] > 0)
        rows, moments, values = self._consumers.pick(values, there, at, stretch.step)
        row_values, queue = values[rows.poll, rows.thing], which[rows.thing]
        name = pa.array(channel_names(queue, row_values[:, 0]), pa.string())
        known = pa.array(~rows.removed)
        columns = {
            "at": _moment(moments[rows.poll]),
            "vhost": named(shape.vhosts, queue),
            "queue": named(shape.names, queue),
            "tag": named([f"ctag-{it}" for it in shape.names], queue),
            "channel": name,
            "connection": name,
            "user": pa.repeat(USER, len(queue)),
            "node": named(shape.node_names, shape.node[queue]),
            "prefetch_count": pa.array(row_values[:, 1], mask=rows.removed),
            "ack_required": known,
            "active": known,
            "gone": pa.array(rows.removed),
        }
        return ordered(CONSUMER_SAMPLES, columns)

    def _node_rows(self, dice: np.random.Generator, stretch: SimulatedSteps, seen: Ints, at: Ints) -> pa.Table:
        poll, node = np.nonzero(np.ones((len(seen), len(self._shape.node_names)), dtype=np.bool_))
        figures = node_figures(dice, stretch, seen[poll], node)
        up = stretch.up[seen[poll], node]
        counts = [name for name in figures if name not in {"alarm", "uptime"}]
        columns = {
            "at": _moment(at[poll]),
            "node": named(self._shape.node_names, node),
            "running": pa.array(up),
            "being_drained": pa.array(np.zeros(len(poll), dtype=np.bool_)),
            "mem_alarm": pa.array(figures["alarm"], mask=~up),
            "disk_free_alarm": pa.array(np.zeros(len(poll), dtype=np.bool_), mask=~up),
            "uptime_seconds": pa.array(figures["uptime"], mask=~up),
            "partitions": pa.array(np.zeros(len(poll), dtype=np.int64), mask=~up),
            **{name: pa.array(figures[name], mask=~up) for name in counts},
        }
        return ordered(NODE_SAMPLES, columns)

    def _poll_rows(self, at: Ints, *, whole: bool) -> pa.Table:
        families = ("overview", "queues", "channels", "consumers", "nodes")
        family = np.tile(np.arange(len(families)), len(at))
        moments = np.repeat(at, len(families))
        count = len(moments)
        columns = {
            "at": _moment(moments),
            "family": named(list(families), family),
            "success": pa.array(np.ones(count, dtype=np.bool_)),
            "took": pa.array(np.full(count, 0.2)),
            "age": pa.array(np.zeros(count)),
            "objects": pa.repeat(pa.scalar(len(self._shape), pa.int64()), count),
            "gaps": pa.repeat(pa.scalar(0, pa.int64()), count),
            "whole": pa.array((moments == at[0]) & whole),
        }
        return ordered(POLL_SAMPLES, columns)


def _moment(micros: Ints) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", tz="UTC"))
