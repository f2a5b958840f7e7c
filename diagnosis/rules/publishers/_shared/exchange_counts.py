"""What exchanges received and routed between readings."""

from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.series import span
from diagnosis.window import Series, Timestamped


def messages_in(series: Series[Exchange]) -> int:
    """Return the messages published to an exchange over its readings."""
    return (series[-1].value.stats.publish_in or 0) - (series[0].value.stats.publish_in or 0)


def messages_out(series: Series[Exchange]) -> int:
    """Return the messages routed to queues; a message that goes to three queues counts three times."""
    return (series[-1].value.stats.publish_out or 0) - (series[0].value.stats.publish_out or 0)


def shown_loss(series: Series[Exchange]) -> float:
    """Return the messages per second that an exchange received and did not route, by its own counters."""
    return (messages_in(series) - messages_out(series)) / max(span(series), 1.0)


def messages_lost(series: Series[Exchange], counter: str) -> int:
    """Return the messages that no queue took over some readings, where the broker counts them by exchange.

    Elsewhere they are what an exchange received and did not route, dropped or returned.

    Args:
        series: readings of one exchange.
        counter: `drop_unroutable` or `return_unroutable`.
    """
    older, newer = (getattr(seen.value.stats, counter) for seen in (series[0], series[-1]))
    return messages_in(series) - messages_out(series) if newer is None else newer - (older or 0)


def exchange_histories(view: View) -> dict[tuple[str, str], Series[Exchange]]:
    """Return the consecutive readings of each exchange since its counters last fell, oldest first."""
    return per_view(view, _histories)


def _histories(view: View) -> dict[tuple[str, str], Series[Exchange]]:
    found: dict[tuple[str, str], list[Timestamped[Exchange]]] = {}
    for seen in view.window.readings("exchanges"):
        here = set()
        for exchange in seen.value:
            here.add(exchange.key)
            series = found.setdefault(exchange.key, [])
            if series and _begins_again(series[-1].value, exchange):
                series.clear()
            series.append(Timestamped(seen.at, exchange))
        for key in found.keys() - here:
            del found[key]
    return {key: tuple(series) for key, series in found.items()}


def _begins_again(older: Exchange, newer: Exchange) -> bool:
    """Return whether counters fell, or are those of another source: without statistics they are absent until then."""
    other = (older.stats.drop_unroutable is None) != (newer.stats.drop_unroutable is None)
    return other or (newer.stats.publish_in or 0) < (older.stats.publish_in or 0)
