"""The clusters under watch, a poller each: who stays, who comes and who goes when the settings change."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ackscope.clock import Clock
from ackscope.snapshot import Snapshot
from exporter.polling.poller import Poller
from exporter.runtime.fingerprint import Fingerprint, fingerprint
from exporter.runtime.snapshot_relay import Feed
from exporter.settings import ClusterSettings, ExporterSettings


@dataclass(frozen=True, slots=True)
class Watched:
    """One cluster under watch.

    Attributes:
        broker: the address that is asked; another one is another broker, of which nothing is known.
    """

    poller: Poller
    feed: Feed
    mark: Fingerprint
    broker: str


@dataclass(frozen=True, slots=True)
class Change:
    """The way from some settings to others; nothing of it has happened yet.

    Attributes:
        after: every cluster that is watched then.
        fresh: names of those with a new poller.
        anew: names of those of which nothing is known: they are new, or another broker.
        gone: names of those that end.
    """

    after: dict[str, Watched]
    fresh: tuple[str, ...]
    anew: tuple[str, ...]
    gone: tuple[str, ...]

    def __str__(self) -> str:
        """It in words, for the log."""
        changed = [name for name in self.fresh if name not in self.anew]
        groups = (("new or moved", self.anew), ("changed", changed), ("gone", self.gone))
        told = [f"{what}: {', '.join(names)}" for what, names in groups if names]
        return f"clusters {'; '.join(told)}" if told else "clusters as before"


class Watch:
    """Holds the pollers.

    Args:
        settings: of the first clusters.
        clock: of all pollers.
        hand_on: takes every snapshot; called from the pollers' own threads.
        latest: the last snapshot of a cluster by its name; None before the first.

    Raises:
        ConfigError: a file of the settings cannot be read.
    """

    def __init__(
        self,
        settings: ExporterSettings,
        clock: Clock,
        hand_on: Callable[[Snapshot], None],
        latest: Callable[[str], Snapshot | None],
    ) -> None:
        self._clock, self._hand_on, self._latest = clock, hand_on, latest
        self._watched: dict[str, Watched] = {}
        self._watched = self.plan(settings).after

    @property
    def pollers(self) -> Mapping[str, Poller]:
        """By the name of the cluster."""
        return {name: watched.poller for name, watched in self._watched.items()}

    def start(self) -> None:
        """Begin to poll."""
        for poller in self.pollers.values():
            poller.start()

    def stop(self) -> None:
        """End all, side by side."""
        _stop(list(self.pollers.values()))

    def plan(self, settings: ExporterSettings) -> Change:
        """Make what these settings need, and start nothing.

        Raises:
            ConfigError: a file of the settings cannot be read.
        """
        after: dict[str, Watched] = {}
        fresh, anew = [], []
        for name, cluster in settings.clusters.items():
            before = self._watched.get(name)
            mark = fingerprint(cluster.management, settings.poll)
            if before is not None and before.mark == mark:
                after[name] = before
                continue
            broker = _broker(cluster)
            same = before is not None and before.broker == broker
            fresh.append(name)
            if not same:
                anew.append(name)
            feed = Feed(self._hand_on, self._latest(name) if same else None)
            poller = Poller(name, cluster.management, settings.poll, self._clock, feed)
            after[name] = Watched(poller, feed, mark, broker)
        gone = tuple(name for name in self._watched if name not in after)
        return Change(after, tuple(fresh), tuple(anew), gone)

    def end(self, change: Change) -> None:
        """The first half of the way: what is replaced or gone hands nothing on any more."""
        ended = [it for name, it in self._watched.items() if change.after.get(name) is not it]
        for watched in ended:
            watched.feed.off()
        # Not waited for: a request that hangs takes its time.
        threading.Thread(target=_stop, args=([it.poller for it in ended],), name="watch-ends", daemon=True).start()

    def begin(self, change: Change) -> None:
        """The second half: what is new starts."""
        self._watched = change.after
        for name in change.fresh:
            change.after[name].poller.start()


def _broker(cluster: ClusterSettings) -> str:
    address = cluster.management.address()
    return f"{address.where}{address.path}"


def _stop(pollers: list[Poller]) -> None:
    threads = [threading.Thread(target=poller.stop, daemon=True) for poller in pollers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
