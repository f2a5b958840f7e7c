"""pub-nacked-overflow (A08): a full queue refuses what is published to it.

A publisher with confirms gets basic.nack; one without learns nothing, and its message is gone. The broker counts
no nacks, so they are told from two balances:

* of the queue: published, and neither stored nor taken since (a queue with a message TTL is not judged by it);
* of a confirm-mode channel: published, and neither confirmed nor open. Unroutable messages are confirmed, so they
  do not count here. A channel does not say where it publishes to: it is a suspect, not a proof.
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import InconclusiveReport
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.overflow_report import Full, Suspect, report
from diagnosis.series import count, delta, last, span
from diagnosis.window import Series

NAME = "pub-nacked-overflow"

REFUSES = ("reject-publish", "reject-publish-dlx")
TAKEN = ("ack", "deliver_no_ack", "get_no_ack")
"""Counters of messages that left the queue for good, into a client's hands."""
_NOISE = 0.05


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that refuses when it is full, and is."""
    suspects: tuple[Suspect, ...] | None = None
    blind: list[str] = []
    for queue in view.queues:
        if queue.setting("overflow") not in REFUSES:
            continue
        lately = last(view.history(queue), view.thresholds.interval)
        levels = [_level(seen.value) for seen in lately]
        if len(lately) < 2 or max(levels) < 1.0 or min(levels[-2:]) < view.limits(queue).publishers.overflow_relief:
            continue
        refused = _refused(lately)
        if suspects is None:
            suspects = _suspects(view)
        told = tuple(suspect for suspect in suspects if suspect.vhost == queue.vhost)
        silent = _silent_publishers(view, queue.vhost)
        certain = (refused or 0) > 0 or (refused is None and bool(told))
        if certain:
            severity = Severity.CRITICAL
        elif refused is None and silent:
            severity = Severity.WARNING
        elif min(levels[-2:]) >= 1.0:
            severity = Severity.INFO
        else:
            continue
        if not view.fresh("channels"):
            blind.append(queue.name)
        yield report(
            NAME,
            severity,
            Full(
                queue=queue,
                lately=lately,
                whole=view.history(queue),
                refused=refused,
                suspects=told if certain else (),
                silent=silent if certain or severity is Severity.WARNING else (),
                acked=delta(lately, "ack"),
            ),
        )
    if blind:
        yield InconclusiveReport(
            rule=NAME,
            because=f"channels were not read, so the publishers to queue {min(blind)!r} cannot be named",
            needs="make /api/channels answer (the user that asks needs the tag monitoring)",
        )


def _level(queue: Queue) -> float:
    """How full a queue is: 1 where the next message is refused; 0 where it has no limit or tells no count.

    Only ready messages count. Source: https://www.rabbitmq.com/docs/maxlength
    """
    levels = [0.0]
    messages, ready_bytes = queue.messages_ready, queue.message_bytes_ready
    length, space = queue.setting("max-length"), queue.setting("max-length-bytes")
    if isinstance(length, int) and messages is not None:
        levels.append(messages / length if length > 0 else 1.0)
    if isinstance(space, int) and ready_bytes is not None:
        # The message that does not fit any more is refused: count one of average size.
        average = ready_bytes / messages if messages else 0.0
        levels.append((ready_bytes + average) / space if space > 0 else 1.0)
    return max(levels)


def _refused(lately: Series[Queue]) -> int | None:
    """Messages published to the queue that it neither holds nor handed out; None where that cannot be told.

    Counters are current and `messages` is up to 5 s old: of a queue that works at its limit, a few are noise.
    """
    first, final = lately[0].value, lately[-1].value
    if final.setting("message-ttl") is not None or first.messages is None or final.messages is None:
        return None
    stored = final.messages - first.messages
    published = delta(lately, "publish")
    refused = published - delta(lately, *TAKEN) - stored
    return refused if refused >= max(2.0, _NOISE * published) else 0


def _suspects(view: View) -> tuple[Suspect, ...]:
    """Confirm-mode channels that lately published more than was confirmed or is open, most first."""
    found = []
    for channel in view.channels:
        if channel.confirm is not True or not channel.stats.publish:
            continue
        nacked = _nacked(view, channel)
        if nacked is not None and nacked > 0:
            found.append(Suspect(channel=channel, connection=view.connection(channel.connection_name), nacked=nacked))
    return tuple(sorted(found, key=lambda suspect: (-suspect.nacked, suspect.channel.name)))


def _nacked(view: View, channel: Channel) -> int | None:
    """At least so many publishes of a channel were refused lately; None where the broker does not tell.

    Counters are current and `messages_unconfirmed` is up to 5 s old, so the largest open number seen is given away,
    and what is left must be a real share of all that was published: a few in flight look like a few nacks.
    """
    history = view.channel_history(channel.name)
    lately = last(history, view.thresholds.interval)
    unconfirmed = [seen.value.messages_unconfirmed for seen in lately]
    known = [number for number in unconfirmed if number is not None]
    if not known or len(known) < len(unconfirmed):
        return None
    first_read = view.channels_before
    began_inside = len(lately) == len(history) and first_read is not None and history[0].at != first_read
    before = 0 if began_inside else _open(lately[0].value)
    nacked = _open(lately[-1].value) - before - max(known)
    published = count(lately[-1].value.stats, "publish") - (
        0 if began_inside else count(lately[0].value.stats, "publish")
    )
    return nacked if nacked >= max(2.0, view.thresholds.publishers.overflow_share * published) else 0


def _open(channel: Channel) -> int:
    return count(channel.stats, "publish") - count(channel.stats, "confirm")


def _silent_publishers(view: View, vhost: str) -> tuple[Channel, ...]:
    """Channels that publish without confirms: what is refused of theirs is lost without a word."""
    found = []
    for channel in view.channels:
        if channel.vhost == vhost and channel.confirm is False and not channel.transactional and channel.stats.publish:
            lately = last(view.channel_history(channel.name), view.thresholds.interval)
            if span(lately) > 0 and delta(lately, "publish") > 0:
                found.append(channel)
    return tuple(sorted(found, key=lambda channel: channel.name))
