"""What a rule lacks: parts never read or too old, counters that are not kept, queues that are not shown."""

from collections.abc import Iterator

from ackscope.findings import Inconclusive
from ackscope.snapshot import Queue
from diagnosis.contract import Rule, View
from diagnosis.kept import kept
from diagnosis.series import span
from diagnosis.words import amount, lasting, some

NEW_SECONDS = 15.0


def missing(rule: Rule, view: View) -> Iterator[Inconclusive]:
    """Why a rule cannot be asked at all; nothing where it can."""
    unread = [family for family in rule.needs if not view.fresh(family)]
    if unread:
        yield _unread(rule, view, unread)
        return
    if not rule.counts:
        return
    latest = view.window.latest
    overview = latest.overview.value if latest else None
    if overview is not None and (overview.statistics is False or overview.rates_mode == "none"):
        yield Inconclusive(
            rule=rule.name,
            because="the broker keeps no message counters (statistics are disabled, or rates_mode is none)",
            needs="set management.rates_mode = basic and management.disable_stats = false in rabbitmq.conf, restart",
        )
    elif len(view.window.readings("queues")) < 2:
        yield Inconclusive(
            rule=rule.name,
            because="the queues were read once only, and counters tell something when they are compared",
            needs="wait for the next poll",
        )


def blind_spots(rule: Rule, view: View) -> Iterator[Inconclusive]:
    """What a rule that can be asked does not see."""
    if "queues" not in rule.needs:
        return
    hidden = _hidden(view)
    if hidden:
        yield Inconclusive(
            rule=rule.name,
            because=f"{amount(hidden, 'queue')} of the cluster cannot be seen by the user that asks",
            needs="allow it to look: rabbitmqctl set_permissions -p VHOST USER '' '' ''",
        )
    if view.unread:
        yield Inconclusive(
            rule=rule.name,
            because=f"the statistics of {amount(len(view.unread), 'queue')} with messages were not read within "
            f"{lasting(view.thresholds.data_age)}: the suspicious ones are read first",
            needs="wait, or raise poll.budget in the exporter's configuration",
        )
    silent = kept(view, _all_silent)
    if silent:
        yield Inconclusive(
            rule=rule.name,
            because=f"the broker tells no counts of messages and consumers for {amount(len(silent), 'queue')}: "
            f"{some(silent)}",
            needs="see whether the nodes of these queues are running: rabbitmq-diagnostics cluster_status",
        )


def _all_silent(view: View) -> list[str]:
    """Queues that tell nothing, by their names; looked for once a view, for every rule asks."""
    return sorted(f"{queue.name!r} in vhost {queue.vhost!r}" for queue in view.queues if _silent(view, queue))


def _silent(view: View, queue: Queue) -> bool:
    """Whether a queue tells nothing of what rules ask, and is not merely new.

    A new one has neither state nor counts for up to 12 s (its own tick and the statistics interval).
    """
    if queue.messages_ready is not None and queue.consumers is not None:
        return False
    return queue.state is not None or span(view.history(queue)) >= NEW_SECONDS


def _unread(rule: Rule, view: View, families: list[str]) -> Inconclusive:
    latest = view.window.latest
    told = []
    for family in families:
        age = view.age(family)
        error = latest.parts[family].error if latest else None
        why = f" ({error})" if error else ""
        told.append(f"{family} never read{why}" if age is None else f"{family} last read {lasting(age)} ago{why}")
    return Inconclusive(
        rule=rule.name,
        because="; ".join(told),
        needs="make the management API answer (its user needs the tag monitoring), or wait for the next poll",
    )


def _hidden(view: View) -> int:
    """Queues that two looks in a row did not show: in one look, a queue may just have come or gone.

    The management API answers 200 and leaves out virtual hosts where the user has no permission.
    """
    told = [snapshot.hidden_queues for snapshot in view.window.snapshots[-2:]]
    known = [number for number in told if number is not None]
    return min(known) if len(known) == 2 else 0
