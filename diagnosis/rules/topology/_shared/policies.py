"""Which policy covers what, as the broker reckons it, shared by the rules about policies.

A policy covers queues or exchanges of its virtual host whose name its pattern finds; of several the highest priority
counts, and one only. An operator policy is merged into it.
Source: https://www.rabbitmq.com/docs/policies
"""

import re

from ackscope.snapshot import Queue
from ackscope.topology import Policy

_QUEUES = {"queues", "all"}
_BY_TYPE = {"classic_queues": "classic", "quorum_queues": "quorum", "streams": "stream"}

MIRRORING = (
    "ha-mode",
    "ha-params",
    "ha-sync-mode",
    "ha-sync-batch-size",
    "ha-promote-on-shutdown",
    "ha-promote-on-failure",
)
"""Keys of classic mirrored queues, gone with 4.0."""
REMOVED = {"queue-mode": (4, 0), "queue-version": (4, 0), "queue-master-locator": (4, 3)}
"""Keys without effect -> the first version in which that is so. For classic queues alone: all are lazy since 3.12, and
have storage version 2 since 4.0; 4.3 refuses a new policy with the last one."""


def covers_queues(policy: Policy) -> bool:
    """Whether it is about queues at all, as far as that can be told."""
    return policy.apply_to is None or policy.apply_to in _QUEUES or policy.apply_to in _BY_TYPE


def matches(policy: Policy, queue: Queue) -> bool:
    """Whether a policy's virtual host, pattern and kind fit a queue; not whether it wins."""
    if policy.vhost != queue.vhost or not covers_queues(policy):
        return False
    wanted = _BY_TYPE.get(policy.apply_to or "")
    if wanted is not None and queue.type != wanted:
        return False
    try:
        return re.search(policy.pattern or "", queue.name) is not None
    except re.error:
        # The broker's expressions are those of Erlang: one that we cannot read covers nothing that we can tell.
        return False
