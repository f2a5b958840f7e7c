"""Numbers by which what is usual at this hour of the week tells what is not."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class UsualThresholds(Settings):
    """Of all rules that know what is usual, where `history.rollups` is set and the pipeline has made bands.

    Attributes:
        oldest: bands whose history ended longer ago than this are not used.
        least: hours that a band must be made of for a finding to be left alone because of it: of the same hour of the
            day in the past days; weeks of the same hour of the week are always enough.
        times: more than so many times the most that is usual is worth telling.
        slower: less than this share of the least that is usual is worth telling.
        confirm_least: a confirm that takes less than this is told in no case, however quick it usually is.
        path_least: and so is a TCP connect that takes less than this.
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
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart: nothing is silent for long enough in them."""
        return cls()
