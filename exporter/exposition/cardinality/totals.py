"""All queues of a cluster added up by type, state and virtual host."""

import heapq
from collections import Counter
from collections.abc import Mapping

from ackscope.snapshot import Queue
from exporter.exposition.cardinality.sums import Sum, Sums
from exporter.exposition.collectors.contract import OTHER, Tally, Totals

OF_A_VHOST = ("messages", "messages_ready", "messages_unacked", "consumers", "memory", "message_bytes")
"""What is added up for each virtual host, of which there may be thousands."""


def totals(sums: Sums[Queue], counts: Mapping[str, Mapping[str, float]], max_vhosts: int) -> Totals:
    """The totals.

    Args:
        sums: of groups (type, virtual host, state, node, how its replicas are).
        counts: type -> path -> what its queues rose by.
        max_vhosts: virtual hosts with totals of their own.
    """
    states: Counter[tuple[str, str]] = Counter()
    nodes: Counter[tuple[str, str]] = Counter()
    replicas: Counter[tuple[str, str]] = Counter()
    for (name, _, state, node, replication), number in sums.numbers.items():
        states[name, state] += number
        nodes[name, node] += number
        if replication:
            replicas[name, replication] += number
    types = sorted(sums.types.items())
    return Totals(
        states=dict(sorted(states.items())),
        types={name: Tally(number=one.number, sums=sums.told({name: one})) for name, one in types},
        vhosts={
            vhost: Tally(number=sum(one.number for one in part.values()), sums=sums.told(part, OF_A_VHOST))
            for vhost, part in _vhosts(sums, max_vhosts).items()
        },
        places=dict(sorted(nodes.items())),
        replicas=dict(sorted(replicas.items())),
        counts=counts,
    )


def _vhosts(sums: Sums[Queue], most: int) -> Mapping[str, Mapping[str, Sum]]:
    """Virtual host -> type -> sum; those with fewest messages are one."""
    vhosts: dict[str, dict[str, Sum]] = {}
    for (name, vhost), one in sums.pairs.items():
        vhosts.setdefault(vhost, {})[name] = one
    if len(vhosts) <= most:
        return vhosts
    messages = sums.paths.index("messages")
    large = heapq.nlargest(most, vhosts, key=lambda vhost: sum(one.values[messages] for one in vhosts[vhost].values()))
    shown, rest = set(large), dict[str, Sum]()
    for vhost, part in vhosts.items():
        for name, one in part.items() if vhost not in shown else ():
            rest.setdefault(name, Sum(len(sums.paths))).add(one)
    return {**{vhost: vhosts[vhost] for vhost in large}, OTHER: rest}
