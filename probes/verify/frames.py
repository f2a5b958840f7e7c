"""Frames received on a channel, as the evidence of claims."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """basic.deliver or basic.get-ok; `at` in seconds of the monotonic clock."""

    tag: int
    body: bytes
    redelivered: bool
    consumer: str = ""
    """Consumer tag; "" for a message from basic.get."""
    exchange: str = ""
    routing_key: str = ""
    headers: dict[str, Any] = field(default_factory=dict)
    delivery_mode: int | None = None
    waiting: int | None = None
    """Messages left in the queue, from get-ok; None for basic.deliver."""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """basic.ack or basic.nack from the broker to a publisher."""

    tag: int
    multiple: bool
    nacked: bool
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """basic.return: the message was unroutable."""

    code: int
    text: str
    routing_key: str
    body: bytes
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """basic.cancel: the broker ended a consumer."""

    consumer: str
    at: float = 0.0


Frame = Delivery | Confirm | Return | Cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """queue.declare-ok: ready messages, without unacked ones, and consumers."""

    name: str
    messages: int
    consumers: int


class Closed(Exception):
    """The channel or connection is closed.

    Attributes:
        code: reply code of the broker, such as 406; 0 if there is none because the connection was lost or cut.
        text: reply text of the broker.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}" if code else text)
        self.code, self.text = code, text
