"""An exchange without bindings that gets messages, and one of nearly the same name that has bindings and gets none."""

from ackscope.findings import Fact
from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.names import look_alike, unseen_differences
from diagnosis.routes import targets
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in


def similar_exchange(view: View, exchange: Exchange) -> str | None:
    """Return the exchange that a publisher probably means instead of one that nothing is bound to; None without one.

    It is the only one of its name, leads to a queue, and gets no message meanwhile.
    """
    if not exchange.name or view.bindings is None:
        return None
    if any((each.vhost, each.source) == exchange.key for each in view.bindings):
        return None
    alike = [each for each in view.exchanges if each.vhost == exchange.vhost and look_alike(each.name, exchange.name)]
    found = [
        each.name
        for each in alike
        if targets(view, each.vhost, each.name, None) and not messages_in(exchange_histories(view)[each.key])
    ]
    return found[0] if len(found) == 1 else None


def similar_facts(exchange: Exchange, similar: str | None) -> dict[str, Fact]:
    """Return `{"similar_exchange", "similar_differs"}`: the differences are those that a reader does not see."""
    differs = unseen_differences(exchange.name, similar) if similar is not None else []
    return {"similar_exchange": similar, "similar_differs": differs}
