"""Simulated history as rows of the tables of minutes: what the pipeline would compute."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackscope.tables import CHANNELS_1M, CONSUMERS_1M, NODES_1M, POLLS_1M, QUEUES_1M
from bench.pipeline.cluster import ClusterShape, Ints
from bench.pipeline.columns import at, named, ordered
from bench.pipeline.simulation import LIMIT, SimulatedSteps

# Successful polls per minute.
POLLS = 2

# Number of queues whose first consumer is followed, the busiest ones: the exporter's limit.
FOLLOWED = 300

USER = "app"


def rolled_up(dice: np.random.Generator, stretch: SimulatedSteps, shape: ClusterShape) -> dict[str, pa.Table]:
    """Return rows of queues, channels, consumers, nodes and polls by table name; the steps are minutes."""
    return {
        QUEUES_1M.name: _queues(stretch, shape),
        CHANNELS_1M.name: _channels(stretch, shape),
        CONSUMERS_1M.name: _consumers(stretch, shape),
        NODES_1M.name: _nodes(dice, stretch, shape),
        POLLS_1M.name: _polls(dice, stretch, shape),
    }


def _queues(stretch: SimulatedSteps, shape: ClusterShape) -> pa.Table:
    step, queue = np.nonzero(stretch.there & ~stretch.away[:, None])
    before = np.concatenate([stretch.ready[:1], stretch.ready[:-1]])
    columns = {
        "minute": at(stretch, step),
        "vhost": named(shape.vhosts, queue),
        "queue": named(shape.names, queue),
        "queue_type": named(shape.types, queue),
        "samples": pa.repeat(pa.scalar(POLLS, pa.int64()), len(step)),
        "messages_ready_max": pa.array(np.maximum(before, stretch.ready)[step, queue]),
        "messages_ready_last": pa.array(stretch.ready[step, queue]),
        "messages_unacked_max": pa.array(stretch.unacked[step, queue]),
        "messages_unacked_last": pa.array(stretch.unacked[step, queue]),
        "consumers_min": pa.array(stretch.consumers[step, queue]),
        "consumers_last": pa.array(stretch.consumers[step, queue]),
        "busy": pa.array((stretch.published[step, queue] > 0).astype(np.int64)),
        "published": pa.array(stretch.published[step, queue]),
        "delivered": pa.array(stretch.delivered[step, queue]),
        "acked": pa.array(stretch.acked[step, queue]),
        "redelivered": pa.array(stretch.redelivered[step, queue]),
    }
    return ordered(QUEUES_1M, columns)


def followed(shape: ClusterShape) -> Ints:
    """Return the queues whose consumers are followed."""
    busy = np.argsort(-np.maximum(shape.rate, 0), kind="stable")
    return busy[shape.consumers[busy] > 0][:FOLLOWED]


def channel_names(queue: Ints, generation: Ints) -> list[str]:
    """Return names of channels as in the broker, with a new port after every deploy."""
    return [
        f"10.0.{it // 250}.{it % 250 + 1}:{20000 + (it * 131 + new * 17) % 40000} -> 10.0.0.1:5672 (1)"
        for it, new in zip(queue.tolist(), generation.tolist(), strict=True)
    ]


def _consumed(stretch: SimulatedSteps, shape: ClusterShape) -> tuple[Ints, Ints]:
    """Return the steps and queues at which a consumer was followed."""
    which = followed(shape)
    there = (stretch.there & ~stretch.away[:, None] & (stretch.consumers > 0))[:, which]
    step, place = np.nonzero(there)
    return step, which[place]


def _channels(stretch: SimulatedSteps, shape: ClusterShape) -> pa.Table:
    step, queue = _consumed(stretch, shape)
    consumers, prefetch = stretch.consumers[step, queue], stretch.prefetch[step, queue]
    unacked = -(-stretch.unacked[step, queue] // consumers)
    name = _channel(stretch, step, queue)
    zero = pa.repeat(pa.scalar(0, pa.int64()), len(step))
    columns = {
        "minute": at(stretch, step),
        "channel": name,
        "connection": _connection(name),
        "vhost": named(shape.vhosts, queue),
        "user": pa.repeat(USER, len(step)),
        "node": named(shape.node_names, shape.node[queue]),
        "samples": pa.repeat(pa.scalar(POLLS, pa.int64()), len(step)),
        "limited": pa.repeat(pa.scalar(POLLS, pa.int64()), len(step)),
        "at_ceiling": pa.array(np.where(unacked >= prefetch, POLLS, 0)),
        "prefetch_last": pa.array(prefetch),
        "unacked_max": pa.array(unacked),
        "unacked_last": pa.array(unacked),
        "unconfirmed_max": zero,
        "unconfirmed_last": zero,
        "published": zero,
        "confirmed": zero,
        "delivered": pa.array(stretch.delivered[step, queue] // consumers),
        "acked": pa.array(stretch.acked[step, queue] // consumers),
        "redelivered": pa.array(stretch.redelivered[step, queue] // consumers),
    }
    return ordered(CHANNELS_1M, columns)


def _consumers(stretch: SimulatedSteps, shape: ClusterShape) -> pa.Table:
    step, queue = _consumed(stretch, shape)
    name = _channel(stretch, step, queue)
    zero = pa.repeat(pa.scalar(0, pa.int64()), len(step))
    columns = {
        "minute": at(stretch, step),
        "vhost": named(shape.vhosts, queue),
        "queue": named(shape.names, queue),
        "tag": named([f"ctag-{it}" for it in shape.names], queue),
        "channel": name,
        "connection": _connection(name),
        "user": pa.repeat(USER, len(step)),
        "node": named(shape.node_names, shape.node[queue]),
        "samples": pa.repeat(pa.scalar(POLLS, pa.int64()), len(step)),
        "inactive": zero,
        "automatic": zero,
        "prefetch_last": pa.array(stretch.prefetch[step, queue]),
    }
    return ordered(CONSUMERS_1M, columns)


def _channel(stretch: SimulatedSteps, step: Ints, queue: Ints) -> pa.Array:
    """Return the name of the channel at each of these steps."""
    codes, places = np.unique(queue * 1_000_000 + stretch.generation[step, queue], return_inverse=True)
    return named(channel_names(codes // 1_000_000, codes % 1_000_000), places)


def _connection(channels: pa.Array) -> pa.Array:
    return pc.replace_substring(channels, " (1)", "")


def _nodes(dice: np.random.Generator, stretch: SimulatedSteps, shape: ClusterShape) -> pa.Table:
    step, node = np.nonzero(np.repeat(~stretch.away[:, None], len(shape.node_names), axis=1))
    figures = node_figures(dice, stretch, step, node)
    down = ~stretch.up[step, node]

    def known(name: str) -> pa.Array:
        return pa.array(figures[name], mask=down)

    zero = pa.repeat(pa.scalar(0, pa.int64()), len(step))
    samples = 4
    columns = {
        "minute": at(stretch, step),
        "node": named(shape.node_names, node),
        "samples": pa.repeat(pa.scalar(samples, pa.int64()), len(step)),
        "down": pa.array(np.where(down, samples, 0)),
        "drained": zero,
        "mem_alarms": pa.array(np.where(figures["alarm"], samples, 0)),
        "disk_alarms": zero,
        "partitions_max": zero,
        "mem_used_max": known("mem_used"),
        "mem_used_last": known("mem_used"),
        "mem_limit_last": known("mem_limit"),
        "disk_free_min": known("disk_free"),
        "disk_free_last": known("disk_free"),
        "disk_free_limit_last": known("disk_free_limit"),
        "fd_used_max": known("fd_used"),
        "fd_total_last": known("fd_total"),
        "sockets_used_max": known("sockets_used"),
        "sockets_total_last": known("sockets_total"),
        "proc_used_max": known("proc_used"),
        "proc_total_last": known("proc_total"),
        "run_queue_max": known("run_queue"),
        "uptime_min": known("uptime"),
    }
    return ordered(NODES_1M, columns)


def node_figures(dice: np.random.Generator, stretch: SimulatedSteps, step: Ints, node: Ints) -> dict[str, np.ndarray]:
    """Return node statistics at these steps."""
    count = len(step)
    seconds = stretch.first + step * stretch.step
    memory = stretch.memory[step, node]
    # Logs fill the disk and are deleted every week.
    disk = 200e9 - (seconds % (7 * 86400)) / (7 * 86400) * 30e9 - node * 1e9 + dice.normal(0, 1e8, count)
    busy = stretch.published.sum(axis=1)[step] / stretch.step
    return {
        "mem_used": memory,
        "mem_limit": np.full(count, LIMIT),
        "alarm": memory >= LIMIT,
        "disk_free": disk.astype(np.int64),
        "disk_free_limit": np.full(count, 2 * 1024**3),
        "fd_used": 180 + dice.poisson(20, count),
        "fd_total": np.full(count, 1_048_576),
        "sockets_used": 140 + dice.poisson(15, count),
        "sockets_total": np.full(count, 943_626),
        "proc_used": 2400 + dice.poisson(60, count),
        "proc_total": np.full(count, 1_048_576),
        "run_queue": dice.poisson(np.minimum(0.2 + busy / 2000, 8)),
        "uptime": (seconds % (60 * 86400) + 1000).astype(np.float64),
    }


def _polls(dice: np.random.Generator, stretch: SimulatedSteps, shape: ClusterShape) -> pa.Table:
    families = {
        "overview": (0.01, 1),
        "nodes": (0.02, len(shape.node_names)),
        "queues": (0.02 + len(shape) * 4e-4, len(shape)),
        "channels": (0.05, FOLLOWED),
        "consumers": (0.05, FOLLOWED),
    }
    names = list(families)
    step, family = np.nonzero(np.repeat(~stretch.away[:, None], len(names), axis=1))
    usual = np.array([families[name][0] for name in names])[family]
    took = usual * np.exp(dice.normal(0, 0.3, len(step)))
    objects = np.array([families[name][1] for name in names])[family]
    zero = pa.repeat(pa.scalar(0, pa.int64()), len(step))
    columns = {
        "minute": at(stretch, step),
        "family": named(names, family),
        "reads": pa.repeat(pa.scalar(POLLS, pa.int64()), len(step)),
        "failures": zero,
        "took_sum": pa.array(np.rint(took * POLLS * 1e9) / 1e9),
        "took_max": pa.array(took),
        "age_max": pa.array(np.full(len(step), 30.0)),
        "objects_last": pa.array(objects),
        "gaps": zero,
        "wholes": zero,
    }
    return ordered(POLLS_1M, columns)
