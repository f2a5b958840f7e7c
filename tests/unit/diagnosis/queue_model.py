"""A queue as a broker keeps it: messages, counters, and statistics that are each refreshed every 5 s."""

from dataclasses import dataclass, field
from typing import Any

from tests.unit.diagnosis.pictures import queue, stats

REFRESH = 5.0
"""Seconds between two refreshes of a statistic."""


@dataclass
class QueueModel:
    """One queue with its true figures and what the management API shows of them.

    Attributes:
        ready: messages that wait; True for one that was delivered before.
        unacked: messages at consumers.
        counts: true counters.
        lost: messages that left without a cause that the counters show, by cause.
        phases: seconds by which the refresh of publishes, of deliveries and of the lengths is late.
    """

    phases: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ready: list[bool] = field(default_factory=list)
    unacked: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("publish", "deliver", "ack", "redeliver"), 0))
    auto: int = 0
    lost: dict[str, int] = field(default_factory=lambda: {"discarded": 0, "vanished": 0})
    _shown: dict[str, Any] = field(default_factory=dict)
    _due: list[float] = field(default_factory=list)

    def publish(self, number: int) -> None:
        """Messages come in through channels."""
        self.ready += [False] * number
        self.counts["publish"] += number

    def dead_letter_in(self, number: int) -> None:
        """Messages come in from another queue; nothing counts them as published."""
        self.ready += [False] * number

    def deliver(self, number: int) -> None:
        """Consumers get messages that they must settle."""
        for _ in range(min(number, len(self.ready))):
            self.counts["redeliver"] += self.ready.pop(0)
            self.counts["deliver"] += 1
            self.unacked += 1

    def ack(self, number: int) -> None:
        """Consumers acknowledge."""
        number = min(number, self.unacked)
        self.unacked -= number
        self.counts["ack"] += number

    def requeue(self, number: int) -> None:
        """Consumers return messages, or end with them."""
        number = min(number, self.unacked)
        self.unacked -= number
        self.ready = [True] * number + self.ready

    def take(self, number: int) -> None:
        """Consumers with automatic acknowledgement get messages that were not delivered before."""
        for _ in range(min(number, len(self.ready))):
            if self.ready[0]:
                break
            self.ready.pop(0)
            self.auto += 1

    def reject(self, number: int) -> None:
        """Consumers reject without requeue; nothing keeps the messages."""
        number = min(number, self.unacked)
        self.unacked -= number
        self.lost["discarded"] += number

    def drop(self, number: int) -> None:
        """Messages that were never delivered disappear: expired, dropped, purged."""
        for _ in range(min(number, len(self.ready))):
            if self.ready[0]:
                break
            self.ready.pop(0)
            self.lost["vanished"] += 1

    def read(self) -> Any:
        """Return the queue as the management API shows it now."""
        return queue(
            messages_ready=self._shown["ready"],
            messages_unacked=self._shown["unacked"],
            stats=stats(
                publish=self._shown["publish"],
                deliver=self._shown["deliver"],
                ack=self._shown["ack"],
                redeliver=self._shown["redeliver"],
                deliver_no_ack=self._shown["auto"],
            ),
        )

    def refresh(self, at: float) -> None:
        """Show the true figures of each statistic whose refresh is due at this second; of all at the first call."""
        everything = not self._due
        if everything:
            self._due = [at + phase - REFRESH for phase in self.phases]
        groups = (
            {"publish": self.counts["publish"]},
            {name: self.counts[name] for name in ("deliver", "ack", "redeliver")} | {"auto": self.auto},
            {"ready": len(self.ready), "unacked": self.unacked},
        )
        for place, group in enumerate(groups):
            if everything or at >= self._due[place]:
                self._shown |= group
                self._due[place] += REFRESH
