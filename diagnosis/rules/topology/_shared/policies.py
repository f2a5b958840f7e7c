"""Matches policies with queues as the broker does.

A policy applies to queues or exchanges of its virtual host whose name matches its pattern; of several that match, only
the one with the highest priority is in force. An operator policy is merged into it.
Source: https://www.rabbitmq.com/docs/policies
"""

import re

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from ackscope.topology import Policy
from diagnosis.contract import View

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
"""Keys of classic queue mirroring, removed in 4.0."""
REMOVED = {"queue-mode": (4, 0), "queue-version": (4, 0), "queue-master-locator": (4, 3)}
"""Keys without effect, and the first version in which they have none.

For classic queues only: all are lazy since 3.12, and
have storage version 2 since 4.0; 4.3 refuses a new policy with the last one."""


def applies_to_queues(policy: Policy) -> bool:
    """Return whether a policy applies to queues; True if unknown."""
    return policy.apply_to is None or policy.apply_to in _QUEUES or policy.apply_to in _BY_TYPE


def matches(policy: Policy, queue: Queue) -> bool:
    """Return whether virtual host, pattern and type of a policy match a queue. It may still not be in force."""
    if policy.vhost != queue.vhost or not applies_to_queues(policy):
        return False
    queue_type = _BY_TYPE.get(policy.apply_to or "")
    if queue_type is not None and queue.type != queue_type:
        return False
    try:
        return re.search(policy.pattern or "", queue.name) is not None
    except re.error:
        # The broker's regular expressions are those of Erlang: one that Python cannot read is taken to match nothing.
        return False


def shadowed_dead_lettering(view: View, queue: Queue) -> Fact:
    """Return the policy that would dead-letter the messages of a queue if another one were not in force; None without.

    Returns:
        `{"name", "in_force", "keys"}`: `keys` are the definition of the policy in force with those of the other one
        added.
    """
    if queue.setting("dead-letter-exchange") is not None:
        return None
    own = [each for each in view.policies if not each.operator and matches(each, queue)]
    in_force = next((each for each in own if each.name == queue.policy), None)
    shadowed = [each for each in own if each is not in_force and "dead-letter-exchange" in each.definition]
    if in_force is None or not shadowed:
        return None
    first = max(shadowed, key=lambda each: (each.priority or 0, each.name))
    return {"name": first.name, "in_force": in_force.name, "keys": {**first.definition, **in_force.definition}}
