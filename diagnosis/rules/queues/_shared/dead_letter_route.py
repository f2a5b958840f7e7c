"""Whether the dead letters of a queue have a route, and what is missing."""

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.routes import targets


def exchange_types(view: View) -> dict[tuple[str, str], str | None]:
    """Return the type of each exchange by virtual host and name."""
    return per_view(view, _exchange_types)


def missing_part(view: View, queue: Queue) -> str | None:
    """Return what is missing between a queue and a queue for its dead letters.

    Returns:
        no_exchange, no_queue (for the default exchange), no_binding or wrong_key. None if there is a route, or that is
        not known.
    """
    name, key = queue.setting("dead-letter-exchange"), queue.setting("dead-letter-routing-key")
    key = key if isinstance(key, str) else None
    if not isinstance(name, str) or (name == "" and key is None):
        return None
    reached = targets(view, queue.vhost, name, key)
    if reached:
        return None
    known = (queue.vhost, name) in exchange_types(view)
    if name and not known:
        return "no_exchange" if view.fresh("exchanges") else None
    if reached is None:
        return None
    return "no_queue" if name == "" else "no_binding" if key is None else "wrong_key"


def new_route(view: View, queue: Queue) -> dict[str, Fact]:
    """Return what to create so that the dead letters of a queue arrive in a queue.

    Returns:
        `{"exchange_type", "new_type", "new_queue", "new_key"}`. `exchange_type` is None if there is no exchange;
        `new_key`, the key of the binding, is None if each message's own key is needed.
    """
    name, key = str(queue.setting("dead-letter-exchange")), queue.setting("dead-letter-routing-key")
    key = key if isinstance(key, str) else None
    kind = exchange_types(view).get((queue.vhost, name))
    new_type = kind or ("direct" if key is not None else "fanout")
    catch_all = {"fanout": "", "topic": "#", "headers": ""}.get(new_type)
    return {
        "exchange_type": kind,
        "new_type": new_type,
        "new_queue": key if name == "" and key else f"{name or queue.name}.dead",
        "new_key": key if key is not None else catch_all,
    }


def _exchange_types(view: View) -> dict[tuple[str, str], str | None]:
    return {exchange.key: exchange.type for exchange in view.exchanges}
