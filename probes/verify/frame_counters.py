"""Computes outcomes and latencies of the messages of a channel in confirm mode from its frames."""

from collections.abc import Iterable, Mapping, Sequence

from probes.verify.frames import Confirm, Frame


class FrameCounters:
    """Counts of settled messages, updated from frames.

    Attributes:
        acked: sequence numbers that were acked.
        nacked: sequence numbers that were nacked.
        again: sequence numbers that were settled more than once, which must not happen.
        at: when each was settled, in seconds of the monotonic clock.
        frames: confirm frames so far.
        covered: largest number of messages that one frame settled.
    """

    def __init__(self) -> None:
        self._read, self._lowest = 0, 0
        self.acked: set[int] = set()
        self.nacked: set[int] = set()
        self.again: list[int] = []
        self.at: dict[int, float] = {}
        self.frames, self.covered = 0, 0

    @property
    def settled(self) -> int:
        """Number of acked and nacked messages."""
        return len(self.at)

    def update(self, log: Sequence[Frame]) -> int:
        """Process the new frames of `log`. Returns the number of settled messages."""
        for frame in log[self._read :]:
            if isinstance(frame, Confirm):
                self._settle(frame)
        self._read = len(log)
        return self.settled

    def latencies(self, sent: Mapping[int, float]) -> list[float]:
        """Return the seconds from sent to settled of each settled message."""
        return [self.at[number] - at for number, at in sent.items() if number in self.at]

    def _settle(self, confirm: Confirm) -> None:
        self.frames += 1
        if confirm.tag in self.at:
            self.again.append(confirm.tag)
        low = self._lowest + 1 if confirm.multiple else confirm.tag
        fresh = [number for number in range(low, confirm.tag + 1) if number not in self.at]
        (self.nacked if confirm.nacked else self.acked).update(fresh)
        self.at.update(dict.fromkeys(fresh, confirm.at))
        self.covered = max(self.covered, len(fresh))
        if confirm.multiple:
            self._lowest = max(self._lowest, confirm.tag)


def tallied(log: Sequence[Frame]) -> FrameCounters:
    """Return the counters of a complete log."""
    tally = FrameCounters()
    tally.update(log)
    return tally


def out_of_order(confirms: Iterable[Confirm]) -> list[tuple[int, int]]:
    """Return (highest earlier number, number) for each frame whose number is lower than an earlier one."""
    found, highest = [], 0
    for confirm in confirms:
        if confirm.tag < highest:
            found.append((highest, confirm.tag))
        highest = max(highest, confirm.tag)
    return found


def quantile(values: Sequence[float], q: float) -> float:
    """Return the quantile `q` of at least one value."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def spread(seconds: Sequence[float]) -> str:
    """Format latencies as one line of text."""
    if not seconds:
        return "none measured"
    low, mid, high, top = (
        1000 * value for value in (min(seconds), quantile(seconds, 0.5), quantile(seconds, 0.99), max(seconds))
    )
    return f"lowest {low:.2f}, p50 {mid:.2f}, p99 {high:.2f}, highest {top:.2f} ms of {len(seconds)}"
