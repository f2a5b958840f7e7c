"""Thresholds of the rules about publishers."""

import re
from typing import Self

from pydantic import Field, field_validator

from ackscope.settings import Seconds, Settings


class PublisherThresholds(Settings):
    """Thresholds of the rules about publishers.

    Attributes:
        overflow_relief: A queue that refused a publish may continue to refuse until it has drained to this share of
            its limit (quorum queues resume below 0.8 of it).
        overflow_share: A channel is a suspect when at least this share of its publishes was nacked; less may be in
            flight.
        unroutable_steps: In this many intervals a channel must have published messages that no queue took; one
            interval may be a restart.
        unroutable_after: An exchange that used to route is urgent after it has routed nothing for this long; a
            consumer that is redeployed with its queue and binding is back by then.
        unroutable_long: Another exchange is a warning after it has lost messages for this long.
        unroutable_rate: A loss of at most this many messages a second stays information.
        unroutable_share: A loss of less than this share of what an exchange receives stays information; replies to
            requesters that are gone are a few in a thousand.
        unroutable_patience: A loss is reported without an exchange only after exchanges, which are read every 15 s,
            had this long to show where it happened.
        unroutable_by_design: Names (regular expressions) of exchanges whose messages may reach no queue, such as
            events to which nobody has to subscribe.
        no_confirms_least: A channel without confirms is reported only after it has published this many messages.
        stall_for: Confirms that have been missing for this long are critical; load alone does not delay a confirm
            that much.
        flow_share: A channel or connection is throttled when it is in flow in at least this share of the readings.
        flow_for: Flow control is reported after it has lasted this long, as far as readings go back.
        flow_confirm: A median confirm latency of the probes from here on means that other publishers are slow too.
        transaction_open: A transaction with uncommitted acknowledgements or publishes is a warning after it has been
            open for this long.
        sync_latency: Waiting for each confirm is reported only where the median confirm latency of the probes is at
            least this.
        sync_share: A channel that waits for each confirm publishes at least this share of one message for each
            confirm latency.
        transient_share: A durable queue is reported when more than this share of its messages is transient.
        transient_least: A durable queue is reported only with at least this many transient messages.
        closing_after: A client whose channels the broker closes at each publish is a warning after this long.
        closing_bytes: A client that sends this many bytes before the broker closes its channel probably sends
            messages that are too large (the limit is 16 MiB since 4.0, 128 MiB before).
        silent_queues: Names (regular expressions) of queues to which somebody always publishes. None by default,
            because only its owner knows how often an application publishes.
        silent_for: A queue that should always get messages is a warning after nobody has published to it for this
            long.
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
                raise ValueError(f"{pattern!r} is not a regular expression ({error}); correct it") from None
        return patterns

    @classmethod
    def one_shot(cls) -> Self:
        """For two snapshots 6 to 10 s apart."""
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
