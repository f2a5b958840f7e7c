"""Clients that are probably those whose logins are refused: they left when that began, and have not come back.

A connection that is open goes on after its password or user was changed; its next login is refused.
Source: https://www.rabbitmq.com/docs/access-control
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.left_clients import LeftClient
from diagnosis.purpose import federated_to
from diagnosis.rules.clients._shared.connections import is_internal
from diagnosis.rules.clients._shared.logins import AMQP, RefusedLogins
from diagnosis.series import delta, span, stretch, unmoved_tail, without_consumers
from diagnosis.view import is_own

_BEFORE = 15.0
"""Seconds by which a client may leave before the first refusal: the parts of a reading are read at different times."""
_REFRESH = 6.0
"""Seconds by which a counter may be late: the broker refreshes its statistics every 5 s."""
_LEAST_MISSED = 5
"""Messages that a queue would have got meanwhile at its former rate, from which on its publisher is missed."""


@dataclass(frozen=True, slots=True)
class ShutOut:
    """What is missing since logins are refused.

    Attributes:
        waiting: queues with messages that lost their last consumer since then, longest first.
        publishers: clients that published and left when refusals began.
        silent: queues whose inflow stopped with one of them.
    """

    waiting: tuple[Queue, ...] = ()
    publishers: tuple[LeftClient, ...] = ()
    silent: tuple[Queue, ...] = ()

    def publisher_facts(self, most: int) -> list[Fact]:
        """Return `{"client", "user", "vhost"}` of at most so many publishers."""
        found = (each.connection for each in self.publishers[:most])
        return [{"client": client_name(it), "user": it.user, "vhost": it.vhost} for it in found]


def shut_out(view: View, logins: RefusedLogins) -> ShutOut:
    """Return the clients that left after refusals began; nothing if it is unknown when they did."""
    began = logins.began
    if logins.protocol not in AMQP or began is None:
        return ShutOut()
    waiting = [
        queue
        for queue in view.queues
        if queue.consumers == 0
        and queue.messages_ready
        and federated_to(queue) is None
        and _left(view, queue, began[0])
    ]
    publishers = [each for each in view.window.left if logins.protocol != "amqp10" and _is_shut_out(view, each, began)]
    missed = [(each, tuple(_silent_since(view, each))) for each in publishers]
    # A client that is missed is named; others that left then only if none is missed.
    named = [pair for pair in missed if pair[1]] or missed
    silent = {queue.key: queue for _, queues in named for queue in queues}
    return ShutOut(
        waiting=tuple(sorted(waiting, key=lambda queue: (-(queue.messages_ready or 0), queue.key))),
        publishers=tuple(each for each, _ in named),
        silent=tuple(queue for _, queue in sorted(silent.items())),
    )


def _left(view: View, queue: Queue, since: Instant) -> bool:
    history = view.history(queue)
    run = stretch(history, without_consumers)
    before = history[: len(history) - len(run)]
    lasts = span(run) >= view.thresholds.early
    return bool(lasts and before and before[-1].value.consumers) and run[0].at.mono >= since.mono - _BEFORE


def _is_shut_out(view: View, left: LeftClient, began: tuple[Instant, Instant]) -> bool:
    """Return whether a client left when refusals began, and nobody has logged in as its user since."""
    if is_own(left.connection) or is_internal(left.connection):
        return False
    came = (
        each.user == left.connection.user and (each.connected_at or 0.0) > began[1].wall for each in view.connections
    )
    return left.gone.mono >= began[0].mono - _BEFORE and left.last.mono <= began[1].mono and not any(came)


def _silent_since(view: View, left: LeftClient) -> Iterable[Queue]:
    """Yield the queues of its virtual host that got messages until a client left, and none since."""
    for queue in view.queues:
        if queue.vhost != left.connection.vhost or not queue.stats.publish:
            continue
        history = view.history(queue)
        quiet = unmoved_tail(history, "publish")
        fed = history[: len(history) - len(quiet) + 1]
        if len(fed) < 2 or span(quiet) < view.thresholds.early:
            continue
        missed = delta(fed, "publish") / max(span(fed), 1.0) * span(quiet)
        stopped_then = fed[-2].at.mono <= left.gone.mono + _REFRESH and fed[-1].at.mono >= left.last.mono - _REFRESH
        if stopped_then and missed >= _LEAST_MISSED:
            yield queue
