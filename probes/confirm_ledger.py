"""Records the messages of one epoch (one channel), each with exactly one outcome.

Delivery tags restart with each channel, so a ledger is never used for a second one.
"""

from typing import NamedTuple

from ackscope.records import Outcome


class Settled(NamedTuple):
    """One message with its outcome. Times are in seconds of the monotonic clock.

    Attributes:
        seq: its delivery tag; a negative number if it was given up before it was sent.
        sent: when it was sent or given up.
        at: when the ack or nack arrived; None without one.
        multiple, group: fields of the frame that settled it; None without one, or if it is not known.
    """

    seq: int
    intended: float
    sent: float
    at: float | None
    outcome: Outcome
    multiple: bool | None = None
    group: int | None = None


class SettledFrame(NamedTuple):
    """The effect of one ack or nack frame.

    Attributes:
        covered: number of messages that it answered, including those already counted as undecided.
        settled: messages that got their outcome from it.
    """

    covered: int
    settled: list[Settled]


class ConfirmLedger:
    """Outstanding messages, by delivery tag.

    The amortised cost per message is constant, because tags are assigned and mostly settled in order. Two marks only
    move up: all tags below `_lowest` are answered, and no tag below `_aging` can still time out.
    """

    def __init__(self, undecided_after: float) -> None:
        self._limit = undecided_after
        self._open: dict[int, tuple[float, float]] = {}
        self._returned: set[int] = set()
        self._late: set[int] = set()
        self._next = self._lowest = self._aging = 1
        self._unsent = 0
        self.strays = 0
        """Number of frames that answered no message of this epoch."""

    @property
    def outstanding(self) -> int:
        """Number of messages without an outcome."""
        return len(self._open)

    @property
    def next_tag(self) -> int:
        """The delivery tag of the next message."""
        return self._next

    @property
    def late(self) -> int:
        """Number of messages counted as undecided that the broker has not answered yet."""
        return len(self._late)

    def publish(self, intended: float, sent: float) -> int:
        """Add a published message. Returns its delivery tag."""
        seq = self._next
        self._next = seq + 1
        self._open[seq] = (intended, sent)
        return seq

    def never_sent(self, intended: float, now: float, outcome: Outcome) -> Settled:
        """Add a message that was due and given up before it was sent."""
        self._unsent += 1
        return Settled(-self._unsent, intended, now, None, outcome)

    def returned(self, seq: int) -> None:
        """Note that the broker returned a message (basic.return arrives before its ack)."""
        if seq in self._open:
            self._returned.add(seq)

    def settle(self, tag: int, at: float, *, multiple: bool | None, nacked: bool) -> SettledFrame:
        """Process an ack or nack. Tag 0 with `multiple` answers all messages.

        `multiple` is None where the frame is not known: over AMQP 1.0 a library splits it into single answers.
        A message that had timed out is marked as answered and not counted again.
        """
        if multiple:
            last = min(tag, self._next - 1) if tag else self._next - 1
            tags = range(self._lowest, last + 1)
            self._lowest = max(self._lowest, last + 1)
        else:
            tags = range(tag, tag + 1)
        found: list[tuple[int, tuple[float, float]]] = []
        covered = 0
        for seq in tags:
            times = self._open.pop(seq, None)
            if times is not None:
                found.append((seq, times))
            elif seq in self._late:
                self._late.discard(seq)
                covered += 1
        covered += len(found)
        if not covered:
            self.strays += 1
        settled = []
        for seq, (intended, sent) in found:
            outcome = Outcome.NACKED if nacked else Outcome.ACKED
            if seq in self._returned:
                self._returned.discard(seq)
                outcome = Outcome.NACKED if nacked else Outcome.RETURNED
            group = None if multiple is None else covered
            settled.append(Settled(seq, intended, sent, at, outcome, multiple, group))
        return SettledFrame(covered, settled)

    def expire(self, now: float) -> list[Settled]:
        """Time out messages that were sent longer ago than the limit, and return them."""
        expired = []
        while self._aging < self._next:
            times = self._open.get(self._aging)
            if times is not None:
                intended, sent = times
                if now - sent < self._limit:
                    break
                del self._open[self._aging]
                self._returned.discard(self._aging)
                self._late.add(self._aging)
                expired.append(Settled(self._aging, intended, sent, None, Outcome.TIMED_OUT))
            self._aging += 1
        return expired

    def close(self, outcome: Outcome = Outcome.LOST) -> list[Settled]:
        """End the epoch and return the outstanding messages, which get this outcome: no ack can arrive any more."""
        rest = [Settled(seq, intended, sent, None, outcome) for seq, (intended, sent) in self._open.items()]
        self._open.clear()
        self._returned.clear()
        self._late.clear()
        self._lowest = self._aging = self._next
        return rest
