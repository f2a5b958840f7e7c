"""What our own probes publish that reaches no queue by design: no application loses it."""

from diagnosis.contract import View
from diagnosis.exchange_publishes import METRICS
from diagnosis.memo import per_view
from diagnosis.probe_traffic import unroutable_streams
from diagnosis.rules.publishers._shared.publishers import increase
from diagnosis.series import delta, last, span

_CONFIRM = ".confirm."
"""Part of the names of the queues of a confirm probe; what is before it names the run."""


def own_losses(view: View, vhost: str) -> float:
    """Return the unroutable messages per second that our probes publish by design, to the default exchange."""
    return per_view(view, _probe_losses).get(vhost, 0.0)


def _probe_losses(view: View) -> dict[str, float]:
    if view.counts_losses:
        by_outcomes, by_queues = _by_outcomes(view), _by_queues(view)
        return {
            vhost: max(each.get(vhost, 0.0) for each in (by_outcomes, by_queues))
            for vhost in {*by_outcomes, *by_queues}
        }
    own = {channel.name for channel in view.channels}
    rates: dict[str, float] = {}
    for channel in view.every_channel:
        if channel.name in own or not (channel.stats.drop_unroutable or channel.stats.return_unroutable):
            continue
        history = view.channel_history(channel.name)
        lost = increase(view, history, *METRICS)
        vhost = channel.vhost or ""
        rates[vhost] = rates.get(vhost, 0.0) + lost / max(span(history), 1.0)
    return rates


def _by_queues(view: View) -> dict[str, float]:
    """Return the rates by what the queues of confirm probes get, of whichever ackscope.

    A confirm probe publishes at one pace to each of its queues, and to none.
    """
    paces: dict[tuple[str, str], float] = {}
    for queue in view.every_queue:
        run, confirm, _ = queue.name.rpartition(_CONFIRM)
        if not confirm or not queue.name.startswith(view.thresholds.own_prefixes):
            continue
        history = last(view.history(queue), view.thresholds.interval)
        pace = delta(history, "publish") / span(history) if span(history) else 0.0
        paces[queue.vhost, run] = max(pace, paces.get((queue.vhost, run), 0.0))
    rates: dict[str, float] = {}
    for (vhost, _), pace in paces.items():
        rates[vhost] = rates.get(vhost, 0.0) + pace
    return rates


def _by_outcomes(view: View) -> dict[str, float]:
    """Return the rates by what the probes say: the broker does not list their channels."""
    rates: dict[str, float] = {}
    for each in unroutable_streams(view):
        rates[each.vhost] = rates.get(each.vhost, 0.0) + each.rate
    return rates
