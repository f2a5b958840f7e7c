"""Settings of the polling."""

from pydantic import Field

from ackscope.settings import Seconds, Settings


class PollSettings(Settings):
    """How the management APIs are polled.

    Attributes:
        interval: time from poll to poll; brokers refresh their figures every 5 s, so less tells nothing new.
    """

    interval: Seconds = Field(default=5.0, ge=1.0, le=300.0)
