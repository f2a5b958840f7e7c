"""Numbers that the rules about publishers judge by."""

import re
from typing import Self

from pydantic import Field, field_validator

from ackscope.settings import Seconds, Settings


class PublisherThresholds(Settings):
    """Of the rules about publishers.

    Attributes:
        overflow_relief: a queue that refused a publish may go on refusing until it has drained to this share of
            its limit (quorum queues resume below 0.8 of it).
        overflow_share: a channel is a suspect when at least this share of its publishes was refused; less is within
            what is in flight.
        unroutable_steps: in how many intervals a channel must have published what no queue took; one may be a restart.
        unroutable_after: how long an exchange that used to route must have routed nothing; a consumer that is
            deployed anew and brings its queue and binding along is back by then.
        unroutable_long: how long another exchange must have lost messages (catalogue: 5 min).
        unroutable_rate: lost messages a second, more than this (catalogue: 0.1).
        unroutable_share: of what an exchange got, at least this share must have found no queue; replies to requesters
            that are gone are a few in a thousand.
        unroutable_patience: how long the exchanges, which are read every 15 s, get to show where it vanished.
        unroutable_by_design: names of exchanges (regular expressions) whose messages may find no queue: events to
            which nobody need subscribe.
        no_confirms_least: messages that a channel must have published before it is worth a word.
        stall_for: how long nothing may have been confirmed of what is open; a confirm that takes as long is no matter
            of load (catalogue: 5 s in two polls).
        flow_share: in how many of the readings a channel or connection must have been in flow (catalogue: 0.8).
        flow_for: how long, as far as readings go back.
        flow_confirm: confirm latency of the probes, in seconds, from which flow control is a matter of the broker and
            not of one eager publisher.
        transaction_open: how long a transaction may hold acknowledgements or publishes back (catalogue: 60 s).
        sync_latency: confirm latency of the probes, in seconds, from which waiting for each confirm is worth a word.
        sync_share: a channel that waits for each confirm publishes at least this share of one a latency.
        transient_share: of the messages of a durable queue, more than this are lost with its node (catalogue: 0.1).
        transient_least: and at least so many.
        closing_after: how long channels must have been opened and closed without a publish that counted.
        closing_bytes: bytes that a connection sent for each channel that was closed: from here on, too large a
            message is the likely cause (the broker's limit is 16 MiB since 4.0, 128 MiB before).
        silent_queues: names of queues (regular expressions) that somebody always publishes to. None by default: how
            often an application publishes is known to its owner only.
        silent_for: how long nothing may have been published to such a queue.
    """

    overflow_relief: float = Field(default=0.8, gt=0.0, le=1.0)
    overflow_share: float = Field(default=0.1, gt=0.0, le=1.0)
    unroutable_steps: int = Field(default=2, ge=1)
    unroutable_after: Seconds = 60.0
    unroutable_long: Seconds = 300.0
    unroutable_rate: float = Field(default=0.1, ge=0.0)
    unroutable_share: float = Field(default=0.05, gt=0.0, le=1.0)
    unroutable_patience: Seconds = 20.0
    unroutable_by_design: tuple[str, ...] = ()
    no_confirms_least: int = Field(default=100, ge=1)
    stall_for: Seconds = 20.0
    flow_share: float = Field(default=0.8, gt=0.0, le=1.0)
    flow_for: Seconds = 20.0
    flow_confirm: Seconds = 0.25
    transaction_open: Seconds = 60.0
    sync_latency: Seconds = 0.05
    sync_share: float = Field(default=0.5, gt=0.0, le=1.0)
    transient_share: float = Field(default=0.1, gt=0.0, le=1.0)
    transient_least: int = Field(default=10, ge=1)
    closing_after: Seconds = 60.0
    closing_bytes: int = Field(default=1 << 20, ge=1)
    silent_queues: tuple[str, ...] = ()
    silent_for: Seconds = 300.0

    @field_validator("unroutable_by_design", "silent_queues")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression ({error}); mend it") from None
        return patterns

    @classmethod
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart."""
        return cls(
            unroutable_steps=1,
            unroutable_after=4.0,
            unroutable_long=4.0,
            unroutable_patience=0.0,
            stall_for=4.0,
            flow_for=4.0,
            closing_after=4.0,
            silent_for=4.0,
        )
