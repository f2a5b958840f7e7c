"""Message counters, which the overview, queues, channels, exchanges and virtual hosts have."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStats:
    """Counters since the object was created. The broker omits a counter before its first event: then it is None."""

    publish: int | None = None
    publish_in: int | None = None
    publish_out: int | None = None
    confirm: int | None = None
    return_unroutable: int | None = None
    drop_unroutable: int | None = None
    deliver: int | None = None
    deliver_no_ack: int | None = None
    deliver_get: int | None = None
    get: int | None = None
    get_no_ack: int | None = None
    get_empty: int | None = None
    ack: int | None = None
    redeliver: int | None = None
