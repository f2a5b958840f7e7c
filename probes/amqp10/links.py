"""The links of an AMQP 1.0 connection: one publishes and learns the outcome of each message, one consumes."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from ackscope.errors import BrokerError
from probes.timed_connection import resolve


class Settlement(StrEnum):
    """The outcome of a message in AMQP 1.0."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    MODIFIED = "modified"
    NONE = "none"
    """Settled without an outcome."""


class LinkEnded(BrokerError):
    """The broker ended a link or its session.

    Attributes:
        condition: the error condition, such as "amqp:resource-deleted"; "" without one.
    """

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"{condition}: {text}" if condition and text else condition or text)
        self.condition = condition


class PublishOutcome(NamedTuple):
    """The outcome of a published message.

    Attributes:
        number: number of the message on its link, from 1.
        at: when the answer reached this machine, in monotonic seconds.
        condition: the error condition of `rejected`; "" without one.
        info: its details, such as the queue that is full.
    """

    number: int
    at: float
    settlement: Settlement
    condition: str
    info: dict[str, Any]


class Received(NamedTuple):
    """One delivery to a consumer.

    Attributes:
        at: when it reached this machine, in monotonic seconds.
        settled: whether the broker sent it settled.
        annotations: message annotations, with text keys.
        message: proton's message, for the sections and fields that are not named here.
    """

    raw: Any
    body: bytes
    at: float
    settled: bool
    delivery_count: int
    first_acquirer: bool
    annotations: dict[str, Any]
    message: Any


class Engine(Protocol):
    """The part of a connection that its links use."""

    read_at: float

    def flush(self) -> float:
        """Send what the protocol has to send; returns the time, in monotonic seconds."""
        ...

    def end_session(self, session: Any) -> None:
        """End a session; `flush` sends it."""
        ...


class Amqp10Link:
    """What both kinds of link have.

    Attributes:
        raw: proton's link.
        opened: future that is done when the broker has attached the link, or refused it.
        ended: why the link ended; None while it lives.
        ended_at, flowed_at: when the end, and the latest change of credit, reached this machine; monotonic seconds.
        confirmed: whether the broker has attached it for good.
        gone: whether the broker has nothing left of it.
    """

    def __init__(self, raw: Any, engine: Engine) -> None:
        self.raw, self._engine = raw, engine
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: LinkEnded | None = None
        self.ended_at = self.flowed_at = 0.0
        self.confirmed = self.gone = False
        self._on_end: Callable[[LinkEnded], None] = lambda _: None

    def on_end(self, call: Callable[[LinkEnded], None]) -> None:
        """Register a callback for the end of the link, unless this program ends it."""
        self._on_end = call

    def was_opened(self) -> None:
        """Note that the broker attached the link. Without a terminus it is about to refuse it."""
        terminus = self.raw.remote_source if self.raw.is_receiver else self.raw.remote_target
        self.confirmed = terminus.type != terminus.UNSPECIFIED
        resolve(self.opened, None)

    def flowed(self) -> None:
        """Note that the broker changed the credit or the window."""
        self.flowed_at = self._engine.read_at

    def arrived(self, delivery: Any, at: float) -> None:
        """Process a delivery, or news of one."""
        raise NotImplementedError

    def end(self, why: LinkEnded) -> None:
        """Note that the link has ended."""
        if self.ended is None:
            self.ended, self.ended_at = why, self._engine.read_at
            resolve(self.opened, None)
            self._on_end(why)

    def detach(self) -> None:
        """Close the link and its session. What a consumer holds is then delivered again. Can be called twice."""
        if self.ended is None:
            self.ended = LinkEnded("", "closed by this program")
            self.raw.close()
        self._engine.end_session(self.raw.session)
        self._engine.flush()


class Amqp10Sender(Amqp10Link):
    """A link that publishes.

    Attributes:
        answers: outcomes in the order of arrival, unless `on_answer` was called.
        sent: number of messages sent.
    """

    def __init__(self, raw: Any, engine: Engine) -> None:
        super().__init__(raw, engine)
        self.answers: list[PublishOutcome] = []
        self.sent = 0
        self._answer: Callable[[PublishOutcome], None] = self.answers.append
        self._flowed: Callable[[], None] = lambda: None

    @property
    def credit(self) -> int:
        """How many messages the broker takes now; 0 as well while it keeps the window of the session closed."""
        return 0 if self.raw.queued > 0 else int(self.raw.credit)

    def on_answer(self, call: Callable[[PublishOutcome], None]) -> None:
        """Register a callback for every outcome, instead of `answers`."""
        self._answer = call

    def on_flow(self, call: Callable[[], None]) -> None:
        """Register a callback for changes of credit or window."""
        self._flowed = call

    def send(self, encoded: bytes, *, settled: bool = False) -> float:
        """Send one encoded message. Without credit it waits in this program until the broker gives some.

        Returns:
            Time at which it was handed to the kernel, in monotonic seconds.
        """
        self.sent += 1
        delivery = self.raw.delivery(str(self.sent))
        self.raw.stream(encoded)
        if settled:
            delivery.settle()
        self.raw.advance()
        return self._engine.flush()

    def flowed(self) -> None:
        """Note that the broker changed the credit or the window."""
        super().flowed()
        self._flowed()

    def arrived(self, delivery: Any, at: float) -> None:
        """Note the outcome of a message."""
        settlement = _SETTLEMENTS.get(int(delivery.remote_state), Settlement.NONE)
        if not delivery.updated or (settlement is Settlement.NONE and not delivery.settled):
            return
        condition = delivery.remote.condition if settlement is Settlement.REJECTED else None
        name = "" if condition is None else str(condition.name)
        info = {} if condition is None else {str(key): value for key, value in (condition.info or {}).items()}
        number = int(delivery.tag)
        delivery.settle()
        self._answer(PublishOutcome(number, at, settlement, name, info))


class Amqp10Receiver(Amqp10Link):
    """A link that consumes.

    Attributes:
        deliveries: deliveries in the order of arrival.
    """

    def __init__(self, raw: Any, engine: Engine) -> None:
        super().__init__(raw, engine)
        self.deliveries: list[Received] = []

    @property
    def credit(self) -> int:
        """How many messages the broker may still send."""
        return int(self.raw.credit)

    def ask(self, count: int) -> float:
        """Give the broker credit for so many more messages. Returns the time of sending."""
        self.raw.flow(count)
        return self._engine.flush()

    def drain(self, count: int) -> float:
        """Like `ask`, and have the broker give back what it cannot use. Returns the time of sending."""
        self.raw.drain(count)
        return self._engine.flush()

    def accept(self, received: Received) -> float:
        """Settle a delivery as processed. Returns the time of sending."""
        return self._settle(received, received.raw.ACCEPTED)

    def reject(self, received: Received) -> float:
        """Settle a delivery as invalid: the broker dead-letters or drops it. Returns the time of sending."""
        return self._settle(received, received.raw.REJECTED)

    def release(self, received: Received) -> float:
        """Give a delivery back, not processed. Returns the time of sending."""
        return self._settle(received, received.raw.RELEASED)

    def modify(
        self,
        received: Received,
        *,
        failed: bool = False,
        undeliverable: bool = False,
        annotations: dict[Any, Any] | None = None,
    ) -> float:
        """Give a delivery back as modified. Returns the time of sending.

        Args:
            received: the delivery.
            failed: whether this counts as a failed delivery.
            undeliverable: whether this consumer must not get it again.
            annotations: message annotations to set, by symbols.
        """
        local = received.raw.local
        local.failed, local.undeliverable, local.annotations = failed, undeliverable, annotations
        return self._settle(received, received.raw.MODIFIED)

    def arrived(self, delivery: Any, at: float) -> None:
        """Decode a delivery once it is whole."""
        if not delivery.readable or delivery.partial:
            return
        data = self.raw.recv(delivery.pending) or b""
        self.raw.advance()
        from proton import Message  # noqa: PLC0415  the extra is loaded, or there would be no delivery

        message = Message()
        message.decode(data)
        body = message.body
        settled = bool(delivery.settled)
        marks = {str(key): value for key, value in (message.annotations or {}).items()}
        self.deliveries.append(
            Received(
                raw=delivery,
                body=bytes(body) if isinstance(body, bytes | memoryview) else str(body).encode(),
                at=at,
                settled=settled,
                delivery_count=int(message.delivery_count),
                first_acquirer=bool(message.first_acquirer),
                annotations=marks,
                message=message,
            )
        )
        if settled:
            delivery.settle()

    def _settle(self, received: Received, state: Any) -> float:
        received.raw.update(state)
        received.raw.settle()
        return self._engine.flush()


_SETTLEMENTS = {
    0x24: Settlement.ACCEPTED,
    0x25: Settlement.REJECTED,
    0x26: Settlement.RELEASED,
    0x27: Settlement.MODIFIED,
}
"""Outcomes by the code of their type in AMQP 1.0."""


def condition_text(condition: Any) -> str:
    """Return an error condition as text, such as "amqp:not-found: no queue 'x'"."""
    if condition is None:
        return "no reason given"
    return f"{condition.name}: {condition.description}" if condition.description else str(condition.name)
