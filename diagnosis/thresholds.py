"""Every number that diagnosis judges by, in one place.

Where a number comes from is told beside it; "catalogue" means the failure-mode study behind the runbooks, which
was made on live brokers of versions 3.10, 4.0 and 4.3.
"""

import re

from pydantic import Field, field_validator

from ackscope.settings import Seconds, Settings


class Thresholds(Settings):
    """Settings of diagnosis (`diagnosis:` in the configuration).

    Attributes:
        data_age: readings older than this are no ground for a verdict; several polls must have failed by then.
        interval: least distance of two readings whose difference is taken as a rate. The broker refreshes its
            figures every 5 s, so nearer readings may show nothing, or two refreshes at once.
        own_prefixes: queues of the probes, which are never the subject of a finding.
        benign_queue_patterns: names of queues that have no consumer on purpose.
        no_consumer_growing: how long a queue without consumers must have been growing (catalogue: 3 min,
            longer than a rolling deployment of a consumer takes).
        no_consumer_quiet: how long one that does not grow must have been left alone (catalogue: 10 min).
        stuck_seen: how long we must have seen nothing acknowledged ourselves; one refresh of the broker.
        stuck_for: how long consumers must have held their full prefetch. Twice that would still beat every
            rule on totals; half would report handlers that work in batches of ten seconds.
        stuck_long: the same where the evidence is weaker: prefetch 1 (a long job looks like this), no prefetch
            limit (a client that collects batches looks like this), or no message waiting.
        stuck_long_job: prefetch 1 and nobody waiting, or one such consumer among working ones; a quarter of
            RabbitMQ's default acknowledgement timeout of 30 min.
            Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout
        stuck_patience: a queue whose consumers acknowledged once in S seconds until now is given this times S.
        requeue_for: how long messages must have gone round.
        requeue_intervals: in how many intervals in a row; a burst after a consumer's restart fills one.
        requeue_share: redelivered, of all delivered, more than this (catalogue: 0.5).
        requeue_rate: redelivered a second, more than this (catalogue: 1).
        requeue_acked: acknowledged, of all delivered, less than this (catalogue: 0.1).
        overflow_relief: a queue that refused a publish may go on refusing until it has drained to this share of
            its limit (quorum queues resume below 0.8 of it).
        overflow_share: a channel is a suspect when at least this share of its publishes was refused; less is within
            what is in flight.
    """

    data_age: Seconds = 60.0
    interval: Seconds = 8.0
    own_prefixes: tuple[str, ...] = ("ackscope.probe.",)
    benign_queue_patterns: tuple[str, ...] = (r"(?i)(dlq|dlx|dead(?!line)|parking|delay|retry)",)
    no_consumer_growing: Seconds = 180.0
    no_consumer_quiet: Seconds = 600.0
    stuck_seen: Seconds = 4.0
    stuck_for: Seconds = 20.0
    stuck_long: Seconds = 60.0
    stuck_long_job: Seconds = 450.0
    stuck_patience: float = Field(default=3.0, ge=1.0)
    requeue_for: Seconds = 20.0
    requeue_intervals: int = Field(default=2, ge=1)
    requeue_share: float = Field(default=0.5, gt=0.0, lt=1.0)
    requeue_rate: float = Field(default=1.0, gt=0.0)
    requeue_acked: float = Field(default=0.1, gt=0.0, lt=1.0)
    overflow_relief: float = Field(default=0.8, gt=0.0, le=1.0)
    overflow_share: float = Field(default=0.1, gt=0.0, le=1.0)

    @field_validator("benign_queue_patterns")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression ({error}); mend it") from None
        return patterns

    @classmethod
    def one_shot(cls) -> "Thresholds":
        """For two looks 6 to 10 s apart: what is seen in both is told, with how long it was seen.

        Where the broker itself says since when a channel is idle, the longer times still count.
        """
        return cls(
            interval=4.0,
            no_consumer_growing=4.0,
            no_consumer_quiet=4.0,
            stuck_seen=4.0,
            stuck_for=4.0,
            requeue_for=4.0,
            requeue_intervals=1,
        )
