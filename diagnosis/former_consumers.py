"""Consumers that ended while their channel stayed open, or that left their queue without any, kept for later questions.

Lists of consumers go back half a minute, and whose consumer a queue lacks, or which queue a client consumed from, is
asked for later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Connection, Consumer, Queue

MOST = 500
"""Maximum number of consumers that are kept, those that ended last."""


@dataclass(frozen=True, slots=True)
class FormerConsumer:
    """A consumer that is no longer listed.

    Attributes:
        consumer: as it was listed last.
        connection: its connection as it was read then; None if that was not listed.
        gone: the first list of consumers without it.
    """

    consumer: Consumer
    connection: Connection | None
    gone: Instant

    @property
    def key(self) -> tuple[str, str]:
        """Virtual host and name of its queue."""
        return self.consumer.vhost, self.consumer.queue


def former_consumers(
    known: Iterable[FormerConsumer],
    before: Sequence[Consumer],
    after: tuple[Instant, Sequence[Consumer]],
    connections: Iterable[Connection],
    channels: Iterable[Channel],
    queues: Iterable[Queue],
) -> tuple[FormerConsumer, ...]:
    """Return the former consumers at the second of two lists of consumers, in the order in which they ended.

    Args:
        known: those until the first list.
        before: the first list.
        after: time and consumers of the second list; unchanged consumers are the same objects as in the first.
        connections: as they were read with the first list.
        channels: as they were read with the second list.
        queues: as they were read with the second list.
    """
    at, listed = after
    held = set(map(id, listed))
    changed = [each for each in before if id(each) not in held]
    known = tuple(known)
    if not changed and not known:
        return ()
    there = {_identity(each) for each in listed}
    ended = [each for each in changed if _identity(each) not in there]
    owners = {each.name: each for each in connections} if ended else {}
    new = [FormerConsumer(each, owners.get(each.connection_name or ""), at) for each in ended]
    again = there.union(map(_identity, ended))
    found = [*(each for each in known if _identity(each.consumer) not in again), *new]
    if not found:
        return ()
    served, asked = {(each.vhost, each.queue) for each in listed}, {each.key for each in found}
    opened, left = {each.name for each in channels}, {each.key for each in queues if each.key in asked} - served
    return tuple(each for each in found if each.consumer.channel_name in opened or each.key in left)[-MOST:]


def _identity(consumer: Consumer) -> tuple[str, str, str | None, str]:
    return consumer.vhost, consumer.queue, consumer.channel_name, consumer.tag
