"""Message counters, which the overview, queues, channels, exchanges and virtual hosts have."""

from dataclasses import dataclass, fields
from operator import attrgetter


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

    def all_counters(self) -> tuple[int | None, ...]:
        """Every counter, in a fixed order."""
        return _all(self)

    def began_again(self, older: "MessageStats") -> bool:
        """Return whether a counter is lower than in an older reading, so that they count from their beginning again."""
        if older is self:
            return False
        # A loop instead of `any`: this runs for each pair of readings of each object that has traffic.
        for was, now in zip(older.all_counters(), self.all_counters(), strict=True):  # noqa: SIM110  as above
            if was and (now or 0) < was:
                return True
        return False


_all = attrgetter(*(field.name for field in fields(MessageStats)))
