"""Thresholds of the rules that compare with the baseline of this hour of the week."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class UsualThresholds(Settings):
    """Thresholds of the rules that compare with a band; they need `history.rollups` and bands from the pipeline.

    Attributes:
        oldest: Bands whose history ended longer ago than this are not used.
        least: A finding is suppressed because its values are usual only if the band has at least this many hours of
            data at the same hour of the day; a band of the same hour of the week always suffices.
        times: Values above this many times the upper edge of the band are reported.
        slower: Values below this share of the lower edge of the band are reported.
        confirm_least: A confirm that takes less than this is not reported, however fast confirms usually are.
        path_least: A TCP connect that takes less than this is not reported, however fast connects usually are.
        silent_busy: A queue that settings do not name is watched only if it usually gets messages in at least this
            share of the minutes of the hour; a queue that is filled in batches is silent between them.
        silent_messages: Such a queue is reported only where usually at least this many messages would have arrived in
            that time.
        silent_soon: Such a queue is information after nobody has published to it for this long.
        silent_together: This many such queues of one vhost are one finding about the vhost.
    """

    oldest: Seconds = 14 * 86400.0
    least: int = Field(default=7, ge=1)
    times: float = Field(default=3.0, gt=1.0)
    slower: float = Field(default=0.5, gt=0.0, lt=1.0)
    confirm_least: Seconds = 0.02
    path_least: Seconds = 0.005
    silent_busy: float = Field(default=0.9, gt=0.0, le=1.0)
    silent_messages: int = Field(default=20, ge=1)
    silent_soon: Seconds = 120.0
    silent_together: int = Field(default=4, ge=2)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two polls 6 to 10 s apart: no queue is silent for long enough between them."""
        return cls()
