"""What exchanges lose by the counters of each channel and exchange, which the Prometheus endpoints have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from diagnosis.contract import View
from diagnosis.exchange_publishes import ExchangeGain, ExchangeKey, Process, channels_by_process, exchange_gains
from diagnosis.rules.publishers._shared.publishers import ActivePublisher

_ONE = 1
"""A single message may be lost by a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLoss:
    """What one exchange lost in the latest interval between two readings of all nodes.

    Attributes:
        place: virtual host and name of the exchange.
        lost: messages, without those of our probes.
        publishers: channels that lost them; `published` counts what they lost here.
        whole: whether these are all; others have counters that fit several channels, or none.
        elsewhere: names of channels that lost messages at other exchanges only.
    """

    place: ExchangeKey
    lost: int
    seconds: float
    publishers: tuple[ActivePublisher, ...]
    whole: bool
    elsewhere: frozenset[str]

    @property
    def rate(self) -> float:
        """Messages lost per second."""
        return self.lost / self.seconds


def counted_losses(
    view: View, vhost: str, counter: str, publishers: Sequence[ActivePublisher], own: float
) -> tuple[CountedLoss, ...]:
    """Return what the exchanges of a virtual host lose, the most first; () if that was not counted.

    Args:
        view: the view that is being judged.
        vhost: the virtual host.
        counter: of channels, `drop_unroutable` or `return_unroutable`.
        publishers: all channels that lose messages in this way.
        own: messages per second that our probes lose at the default exchange.
    """
    gains = {place: each for place, each in (exchange_gains(view) or {}).items() if place[0] == vhost}
    names, losing = channels_by_process(view), {each.channel.name: each for each in publishers}
    probes = {each.name for each in view.every_channel} - {each.name for each in view.channels}
    places = _places(gains, counter, names)
    found = []
    for place, gain in gains.items():
        lost = dict(gain.lost.get(counter, {}))
        ours = [process for process in lost if names.get(process) in probes]
        for process in ours:
            del lost[process]
        unknown = 0 if ours or place[1] else round(own * gain.seconds)
        here = {process: losing[names[process]] for process in lost if names.get(process) in losing}
        number = sum(lost.values()) - unknown
        if number <= _ONE:
            continue
        found.append(
            CountedLoss(
                place=place,
                lost=number,
                seconds=gain.seconds,
                publishers=tuple(
                    each if len(places[each.channel.name]) == 1 else _here(each, lost[process], gain)
                    for process, each in sorted(here.items(), key=lambda item: item[1].channel.name)
                ),
                whole=len(here) == len(lost) and not unknown,
                elsewhere=frozenset(name for name, lossy in places.items() if place not in lossy),
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.lost, each.place)))


def _places(
    gains: Mapping[ExchangeKey, ExchangeGain], counter: str, names: Mapping[Process, str]
) -> dict[str, set[ExchangeKey]]:
    """Return where each joined channel lost messages."""
    found: dict[str, set[ExchangeKey]] = {}
    for place, gain in gains.items():
        for process in gain.lost.get(counter, {}):
            if process in names:
                found.setdefault(names[process], set()).add(place)
    return found


def _here(publisher: ActivePublisher, lost: int, gain: ExchangeGain) -> ActivePublisher:
    """Return a publisher that loses messages at several exchanges with what it loses at one of them."""
    return replace(publisher, published=min(publisher.published, round(lost / gain.seconds * publisher.seconds)))
