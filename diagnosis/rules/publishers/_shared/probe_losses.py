"""What our own probes publish that reaches no queue by design: no application loses it."""

from diagnosis.contract import View
from diagnosis.exchange_publishes import METRICS
from diagnosis.memo import per_view
from diagnosis.probe_traffic import unroutable_streams
from diagnosis.rules.publishers._shared.publishers import increase
from diagnosis.series import span


def own_losses(view: View, vhost: str) -> float:
    """Return the unroutable messages per second that our probes publish by design, to the default exchange."""
    return per_view(view, _probe_losses).get(vhost, 0.0)


def _probe_losses(view: View) -> dict[str, float]:
    if view.counts_losses:
        return _by_outcomes(view)
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


def _by_outcomes(view: View) -> dict[str, float]:
    """Return the rates by what the probes say: the broker does not list their channels."""
    rates: dict[str, float] = {}
    for each in unroutable_streams(view):
        rates[each.vhost] = rates.get(each.vhost, 0.0) + each.rate
    return rates
