"""What the broker reports about AMQP 1.0 sessions and their links: parts of a `Snapshot`."""

from dataclasses import dataclass

from ackscope.clock import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AmqpLink:
    """One link of an AMQP 1.0 session.

    Attributes:
        handle: its number in the session; the consumer tag of a consuming link.
        address, queue: the source of a consuming link and its queue; the target of a publishing one.
        credit: how many more messages the receiver asked for.
        delivery_count: messages sent on it since it was attached.
        settled_by_sender: whether messages are settled when they are sent; None also if each message says that.
        unconfirmed: messages of a publishing link that the broker has not settled yet.
    """

    handle: int
    name: str | None = None
    address: str | None = None
    queue: str | None = None
    credit: int | None = None
    delivery_count: int | None = None
    settled_by_sender: bool | None = None
    unconfirmed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AmqpSession:
    """One AMQP 1.0 session (`/api/connections/{name}/sessions`, from 4.1 on); the broker tells nothing else of it.

    Attributes:
        number: its channel number.
        unsettled: messages delivered to the client and not settled, on all its links together.
        remote_incoming_window, incoming_window: how many more transfers the client and the broker accept.
        consuming, publishing: its links, by what the client does.
        read_at: when it was read; of many connections, each reading of the family reads some.
    """

    connection_name: str
    number: int
    unsettled: int | None = None
    remote_incoming_window: int | None = None
    incoming_window: int | None = None
    consuming: tuple[AmqpLink, ...] = ()
    publishing: tuple[AmqpLink, ...] = ()
    read_at: Instant | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The identity of a session: its connection and number."""
        return (self.connection_name, self.number)
