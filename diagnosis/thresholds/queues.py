"""Thresholds of the rules about queues (C)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class QueueThresholds(Settings):
    """Of the rules about queues (C).

    Attributes:
        overload_for: A queue that has grown for this long although its consumers work is a warning; a burst or a
            deployment is shorter.
        overload_surge: Publishes must have become faster by this factor for the load to be what changed.
        overload_share: Of what was published, at least this share must be left over; less is chance.
        stale_after: An oldest message of this age is a warning if the consumers of its queue work.
        stale_early: An oldest message of this age is information if many younger messages overtook it.
        stale_overtaken: It is overtaken if this many times as many messages were acknowledged since as the queue has
            now.
        loss_skew: Counters and numbers of messages are refreshed every 5 s at different times; this many seconds of
            traffic prove no loss.
        loss_least: Fewer lost messages than this prove no loss.
        loss_share: At least this share of what was published must be lost.
        full_share: A queue that drops messages at its length limit always has at least this share of it.
        maxlen_for: A queue with consumers that has dropped its oldest messages for this long is critical; a burst ends
            sooner.
        expiry_for: A queue with consumers whose messages have expired for this long is a warning.
        dead_letters_for: A dead-letter queue that has grown for this long is a warning.
        dead_letters_least: It must have grown by this many messages for that.
        dlx_for: A missing route that has been seen for this long is a warning, or critical if messages are lost; a
            deployment declares it a little late.
        dlx_waiting_for: Dead letters that a quorum queue has kept for this long are critical.
        cycle_for: A cycle that has been seen for this long is a warning.
        cycle_rate: At least this many messages a second are rejected.
        cycle_acked: Less than this share of all deliveries is acknowledged.
        hot_share: The busiest queue carries more than this share of all that is published and delivered.
        hot_rate: It has at least this many messages a second in and out; with fewer, one core is not the limit.
        hot_for: Traffic that has been at the limit for this long is a warning.
        leak_rate: A fast leak adds more queues a second than this.
        leak_least: A fast leak has added at least this many queues; the probes of ackscope create a few.
        leak_seen: A fast leak has lasted this long; a deployment declares all its queues within seconds.
        leak_slow: A slow leak adds more queues a minute than this.
        leak_for: A slow leak has lasted this long.
        leak_many: More queues than this cost by their number alone.
        orphan_for: A queue that nobody has ever read, with a sibling that is consumed, is a warning after this long.
        orphan_alone: The same without a sibling; somebody may have read it before the broker began to count.
        node_down_for: Classic queues that cannot be reached although their node is running are reported after this
            long.
        large_bytes: Messages of this size on average are large.
        large_least: A queue with fewer messages than this is not judged.
        segment_pinned: A quorum queue is reported when this many bytes passed it while a consumer held one message; a
            healthy log has up to about this many, because it is truncated in large pieces.
        segment_much: This many pinned bytes are a warning.
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
        """For two polls 6 to 10 s apart."""
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
