"""Neighbours of one queue: exchanges bound to it, its consumers, and its dead-letter routes. Pure."""

from dataclasses import dataclass

import pandas as pd

# Maximum names per layer; the others are only counted.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class QueueNeighbours:
    """Layers of a graph from left to right, and its edges.

    Attributes:
        layers: source exchanges, exchanges bound to the queue, the queue, consumers and dead letters; unique names.
        edges: (from, to, routing key).
        omitted: a text for each layer with more names than are shown.
    """

    layers: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[str, str, str], ...]
    omitted: tuple[str, ...] = ()


def neighbours(
    vhost: str, queue: str, bindings: pd.DataFrame, consumers: pd.DataFrame, dead: tuple[tuple[str, str], ...] = ()
) -> QueueNeighbours:
    """The neighbours of one queue.

    Args:
        vhost: virtual host of the queue.
        queue: name of the queue.
        bindings: columns `vhost`, `source`, `destination`, `destination_type`, `routing_key`.
        consumers: rows of `consumer_rows`.
        dead: (exchange, target queue or explanation) of its dead letters.
    """
    here = bindings[bindings["vhost"] == vhost]
    direct = here[(here["destination"] == queue) & (here["destination_type"] == "queue")]
    sources = list(dict.fromkeys(direct["source"]))
    behind = here[(here["destination_type"] == "exchange") & here["destination"].isin(sources)]
    first = [name for name in dict.fromkeys(behind["source"]) if name not in sources]
    mine = consumers[(consumers["vhost"] == vhost) & (consumers["queue"] == queue)]
    box = f"queue {queue}"
    default = "default exchange (by the queue's name)"
    clients = [f"{client} [{tag}]" for client, tag in mine[["client", "tag"]].to_numpy().tolist()]
    ends = [f"dead letters: {exchange or 'default exchange'} -> {target}" for exchange, target in dead]
    edges = [(f"exchange {it}", f"exchange {to}", key) for it, to, key in _rows(behind) if it in first[:_SHOWN]]
    edges += [(f"exchange {it}", box, key) for it, _, key in _rows(direct) if it in sources[:_SHOWN]]
    edges += [(default, box, "")]
    edges += [(box, name, "") for name in (*clients[:_SHOWN], *ends)]
    shown = {name for edge in edges for name in edge[:2]}
    omitted = tuple(
        f"{len(names) - _SHOWN} more {what}"
        for names, what in ((first, "exchanges behind"), (sources, "exchanges"), (clients, "consumers"))
        if len(names) > _SHOWN
    )
    layers = (
        tuple(f"exchange {it}" for it in first[:_SHOWN]),
        (*(f"exchange {it}" for it in sources[:_SHOWN]), default),
        (box,),
        (*clients[:_SHOWN], *ends),
    )
    return QueueNeighbours(
        tuple(tuple(name for name in layer if name in shown) for layer in layers), tuple(dict.fromkeys(edges)), omitted
    )


def _rows(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    return [(source, target, key) for source, target, key in rows[["source", "destination", "routing_key"]].to_numpy()]
