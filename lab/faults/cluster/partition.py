"""network-partition and partition-handling-ignore: a node freezes for longer than net_ticktime, and resumes.

Only with Mnesia, so before 4.3 (and without the feature flag khepri_db). The net_ticktime is short, because otherwise
each fault would take more than a minute. Source: https://www.rabbitmq.com/docs/partitions,
https://www.rabbitmq.com/docs/nettick
"""

import signal

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.faults.cluster.nodes import LAST, until
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra

SHORT_TICK = Extra(files={"advanced.config": b"[{kernel,[{net_ticktime,5}]}].\n"})
_FROZEN_MOST = 30.0


def inject(fault: Fault) -> None:
    """Freeze the third node until the others report it down, resume it, and wait until a node reports the partition."""
    fault.later(lambda: _heal(fault))
    fault.lab.signal(LAST, signal.SIGSTOP)
    try:
        until(fault, "the frozen node reported down", lambda: _given_up(fault), _FROZEN_MOST)
    finally:
        fault.lab.signal(LAST, signal.SIGCONT)
    until(fault, "a partition", lambda: _split(fault))
    fault.announce()
    fault.hold()


def _nodes(fault: Fault) -> list[dict[str, object]]:
    try:
        answer: list[dict[str, object]] = fault.ask("GET", "/api/nodes")
    except BrokerError:
        # The request hangs while a peer is frozen.
        return []
    return answer


def _given_up(fault: Fault) -> bool:
    name = fault.lab.nodes[LAST].name
    return any(node["name"] == name and node.get("running") is False for node in _nodes(fault))


def _split(fault: Fault) -> bool:
    return any(node.get("partitions") for node in _nodes(fault))


def _heal(fault: Fault) -> None:
    fault.lab.signal(LAST, signal.SIGCONT)
    fault.lab.ctl(LAST, "stop_app")
    fault.lab.ctl(LAST, "start_app")


NETWORK_PARTITION = FaultSpec(
    name="network-partition",
    rule="network-partition",
    summary="a node freezes for longer than net_ticktime and resumes: the cluster is partitioned",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    brokers=("3.10", "4.0"),
    nodes=3,
    extra=SHORT_TICK,
    alone=True,
    wrecks=True,
    also=("node-down", "hung-peer"),
)

PARTITION_HANDLING_IGNORE = FaultSpec(
    name="partition-handling-ignore",
    rule="partition-handling-ignore",
    summary="a cluster is partitioned, and its partition handling is `ignore`",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    brokers=("3.10", "4.0"),
    nodes=3,
    extra=SHORT_TICK,
    alone=True,
    wrecks=True,
    also=("network-partition", "node-down", "hung-peer"),
    one_shot=False,
)
