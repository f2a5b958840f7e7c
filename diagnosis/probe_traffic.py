"""Computes what our own probes add to the counters of the whole cluster, from their outcomes.

Their connections, channels and queues are excluded by name. Four actions show only in counters: a passive declare of
the rtt probe, a channel that the redelivery probe closes, a connection of the handshake probe, and a message that no
queue takes.
"""

from dataclasses import dataclass

from ackscope.records import ProbeOutcome, ProbeState
from diagnosis.contract import View

_RECENT_SECONDS = 60.0
"""Seconds over which a stream counts its steps; in its first minute the count is too low."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTraffic:
    """Rates per second over all streams of the probes.

    Attributes:
        declares: passive queue declarations.
        closes: channels closed on connections that stay open.
        connects: connections opened and closed, each with one channel.
        unroutable: published messages that no queue takes.
    """

    declares: float = 0.0
    closes: float = 0.0
    connects: float = 0.0
    unroutable: float = 0.0


def probe_traffic(view: View) -> ProbeTraffic:
    """Return the recent traffic of the probes; all rates are 0 without recent outcomes."""
    reported = _recent(view)
    return ProbeTraffic(
        declares=sum(_steps(each, "declare") for each in reported),
        closes=sum(_steps(each, "channel-close") for each in reported),
        connects=sum(_steps(each, "channel") for each in reported),
        unroutable=sum(each.rate for each in unroutable_streams(view)),
    )


def unroutable_streams(view: View) -> tuple[ProbeOutcome, ...]:
    """Return the running streams whose messages no queue takes, by design; all go to the default exchange."""
    return tuple(each for each in _recent(view) if each.state is ProbeState.RUNNING and each.queue_type == "none")


def _recent(view: View) -> list[ProbeOutcome]:
    return [each for each in view.outcomes if view.now.wall - each.at <= view.thresholds.data_age]


def _steps(outcome: ProbeOutcome, name: str) -> float:
    step = outcome.steps.get(name)
    return step.seconds.count / _RECENT_SECONDS if step is not None else 0.0
