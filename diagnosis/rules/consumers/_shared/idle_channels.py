"""For how long consumers have been idle, or held all that they may: longer than it was seen, if the broker tells so."""

from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.standstill import idle_since, unmoved
from diagnosis.series import piled_up_seconds, stretch
from diagnosis.window import Series


def full_for(view: View, stalled: Series[Queue], links: tuple[ConsumerPath, ...]) -> float:
    """Return for how long consumers that never acknowledged have been full at least, by the backlog behind them.

    Messages stay ready only while no consumer may take more. What was ready before the consumers connected does not
    count.
    """
    ages = [age_seconds(view, link.connection) for link in links]
    return min(piled_up_seconds(stalled), *ages)


def channels_idle_since(view: View, links: tuple[ConsumerPath, ...]) -> float | None:
    """Return since when all channels are idle, by the broker's clock; None if one is busy or unknown."""
    histories = {link.channel.name: view.channel_history(link.channel.name) for link in links if link.channel}
    if not histories or any(link.channel is None for link in links):
        return None
    idle = (stretch(history, unmoved) for history in histories.values())
    known = [idle_since(series) for series in idle]
    return None if None in known else max(each for each in known if each is not None)


def channels_idle_for(view: View, idle: float | None) -> float:
    """Return the seconds that the channels were idle when they were read; 0 if unknown."""
    readings = view.window.readings("channels")
    return 0.0 if idle is None or not readings else max(0.0, readings[-1].at.wall - idle)
