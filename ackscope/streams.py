"""What the broker reports about clients of the stream protocol: parts of a `Snapshot`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConsumer:
    """One consumer that uses the stream protocol (`/api/stream/consumers`).

    Attributes:
        subscription: its number within its connection.
        credit: how many more chunks of messages it asked for.
        consumed: messages sent to it since it subscribed.
        offset: of what it was sent last: the last message, or up to 4.0 the first one of that chunk.
        offset_lag: messages from there to the end of the stream.
        active: False while another consumer of a group with a single active one is active.
        filtered: it asked for some of the messages only, so that the broker skips others.
    """

    connection_name: str
    subscription: int
    vhost: str
    queue: str
    node: str | None = None
    user: str | None = None
    credit: int | None = None
    consumed: int | None = None
    offset: int | None = None
    offset_lag: int | None = None
    active: bool | None = None
    filtered: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """The identity of a consumer: its connection and number."""
        return (self.connection_name, self.subscription)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPublisher:
    """One publisher that uses the stream protocol (`/api/stream/publishers`).

    Attributes:
        number: its number within its connection.
        reference: its name, by which the broker leaves out duplicates.
        published, confirmed, errored: messages since it was declared.
    """

    connection_name: str
    number: int
    vhost: str
    queue: str
    node: str | None = None
    user: str | None = None
    reference: str | None = None
    published: int | None = None
    confirmed: int | None = None
    errored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamClients:
    """Publishers and consumers that use the stream protocol.

    Attributes:
        consumers, publishers: None if the broker does not list them: `rabbitmq_stream_management` is not enabled.
    """

    consumers: tuple[StreamConsumer, ...] | None = None
    publishers: tuple[StreamPublisher, ...] | None = None
