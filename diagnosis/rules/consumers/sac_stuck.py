"""sac-stuck (B13): the single active consumer of a queue is stuck, and healthy ones stand by and get nothing.

The broker makes another one active only when the active one goes: its channel, its connection, or its cancelling.
Source: https://www.rabbitmq.com/docs/consumers#single-active-consumer
"""

from collections.abc import Iterator
from dataclasses import replace

from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers.standstill import holds
from diagnosis.rules.consumers.stuck_report import Hold, report
from diagnosis.words import amount, client

NAME = "sac-stuck"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Tell of every queue whose active consumer is stuck while others wait for their turn."""
    for hold in holds(view):
        if hold.standby:
            yield replace(report(NAME, hold), cause=_cause(hold))


def _cause(hold: Hold) -> str:
    active = hold.holders[0]
    who = client(active.connection, active.consumer.connection_name)
    job = " With prefetch 1 one long job looks the same: ask its owner first." if hold.one_by_one else ""
    return (
        f"The queue has a single active consumer, and {who!r}, which is the active one, holds all that its prefetch "
        f"allows and acknowledges nothing: its handler hangs, or never acknowledges. {amount(hold.standby, 'standby')} "
        f"get nothing until it goes: closing its connection makes the next one active at once.{job}"
    )
