"""Numbers that the rules about queues by themselves (C) judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class QueueThresholds(Settings):
    """Of the rules about queues by themselves (C).

    Attributes:
        overload_for: how long a queue must have been growing behind working consumers for a warning; longer than a
            burst or a deployment (catalogue: window of 2 min and more).
        overload_surge: publishes come faster than before by this factor, so that it is the load that changed.
        overload_share: of what came, at least this share was left over; less is chance.
        stale_after: how old the oldest message of a queue may be whose consumers work (catalogue: 5 min).
        stale_early: an oldest message of this age is told as information where younger ones overtook it.
        stale_overtaken: messages acknowledged since it came, as a multiple of those that the queue holds.
        loss_skew: counters of channels and numbers of queues are refreshed every 5 s, each at its own moment: so many
            seconds of traffic prove no loss.
        loss_least: fewer messages than this prove none either.
        loss_share: of what was published, at least this share is gone (catalogue: 1 %).
        full_share: a queue that drops at its length limit is never emptier than this share of it.
        maxlen_for: how long a queue must have been dropping its oldest messages to be critical; a burst ends sooner.
        expiry_for: how long messages must have been expiring for a warning (catalogue: 5 min).
        dead_letters_for: how long a dead-letter queue must have been growing for a warning (catalogue: 5 min).
        dead_letters_least: by how many messages.
        dlx_for: how long a dead-letter exchange must have been missing for a warning; a deployment declares it late.
        dlx_waiting_for: how long dead letters may wait for their way to come to be (catalogue: 2 min).
        cycle_for: how long messages must have gone round for a warning.
        cycle_rate: rejected a second, at least this.
        cycle_acked: acknowledged, of all delivered, less than this.
        hot_share: of all that is published and delivered, the one queue has more than this.
        hot_rate: messages a second in and out of it, more than this: below, one core is not the limit.
        hot_for: how long for a warning.
        leak_rate: queues that come to stay a second, more than this, for a leak that is told early.
        leak_least: fewer than these are no leak that is told early; the probes themselves make some.
        leak_seen: how long that must have been seen: a deployment declares all its queues within seconds.
        leak_slow: queues a minute that come to stay, more than this, for a leak that is slow (catalogue: 1/min).
        leak_for: how long that must have been seen (catalogue: 30 min).
        leak_many: more queues than this cost whatever they do (catalogue: 10,000).
        orphan_for: how long a queue that nobody ever took from must have been growing for a warning.
        orphan_alone: the same where no other queue gets the same messages: then it may have been taken from before
            the broker began to count.
        node_down_for: how long classic queues may be away whose node runs (catalogue: 2 min).
        large_bytes: messages of this size on average are large (catalogue: 1 MiB).
        large_least: and there are at least so many.
        segment_pinned: bytes that passed a quorum queue while a consumer held one message, and so stay on its disks;
            up to about this many are there anyhow, as the log is cut in large pieces.
        segment_much: so many of them are a warning.
    """

    overload_for: Seconds = 180.0
    overload_surge: float = Field(default=1.5, gt=1.0)
    overload_share: float = Field(default=0.1, gt=0.0, lt=1.0)
    stale_after: Seconds = 300.0
    stale_early: Seconds = 30.0
    stale_overtaken: float = Field(default=2.0, ge=1.0)
    loss_skew: Seconds = 6.0
    loss_least: int = Field(default=5, ge=1)
    loss_share: float = Field(default=0.01, gt=0.0, lt=1.0)
    full_share: float = Field(default=0.9, gt=0.0, le=1.0)
    maxlen_for: Seconds = 60.0
    expiry_for: Seconds = 300.0
    dead_letters_for: Seconds = 300.0
    dead_letters_least: int = Field(default=10, ge=1)
    dlx_for: Seconds = 60.0
    dlx_waiting_for: Seconds = 120.0
    cycle_for: Seconds = 60.0
    cycle_rate: float = Field(default=0.2, gt=0.0)
    cycle_acked: float = Field(default=0.1, gt=0.0, lt=1.0)
    hot_share: float = Field(default=0.6, gt=0.0, lt=1.0)
    hot_rate: float = Field(default=1000.0, gt=0.0)
    hot_for: Seconds = 180.0
    leak_rate: float = Field(default=0.5, gt=0.0)
    leak_least: int = Field(default=20, ge=1)
    leak_seen: Seconds = 20.0
    leak_slow: float = Field(default=1.0, gt=0.0)
    leak_for: Seconds = 1800.0
    leak_many: int = Field(default=10_000, ge=1)
    orphan_for: Seconds = 180.0
    orphan_alone: Seconds = 590.0
    node_down_for: Seconds = 120.0
    large_bytes: float = Field(default=1_048_576.0, gt=0.0)
    large_least: int = Field(default=5, ge=1)
    segment_pinned: float = Field(default=268_435_456.0, gt=0.0)
    segment_much: float = Field(default=2_147_483_648.0, gt=0.0)

    @classmethod
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart; what a burst may look like stays information."""
        return cls(
            loss_skew=3.0,
            maxlen_for=4.0,
            expiry_for=4.0,
            dead_letters_for=4.0,
            dlx_for=4.0,
            dlx_waiting_for=4.0,
            cycle_for=4.0,
            leak_seen=4.0,
            leak_least=10,
            node_down_for=4.0,
        )
