"""Answers to direct reply-to, which brokers before 4.2 count as dropped although their clients get them."""

from collections import defaultdict
from collections.abc import Sequence

from diagnosis.rules.publishers._shared.lossy_exchanges import LossyExchange
from diagnosis.rules.publishers._shared.publishers import ActivePublisher
from diagnosis.series import delta, span
from diagnosis.view import View

_COUNTS_DIRECT_REPLIES = (4, 2)
"""Version before which an answer to direct reply-to counts as dropped although its client gets it. Source:
rabbitmq-server issue 6124; seen on 3.10.8, and not on 4.3.6.
"""

_PACKETS = ("confirm", "return_unroutable", "get", "get_no_ack", "get_empty")
"""Counters of a channel without consumers, each of a packet that the broker sends to its client, at most."""
_MOSTLY = 2.0
"""How many times as many packets as are counted a client must be sent at least."""
_AS_MANY = (0.8, 1.5)
"""Range of the other packets, as a share of the answers, within which these are the answers."""

_ANSWERED = 0.5
"""Least share of the answers that must be seen as packets: clients that came just now were read once."""


def counts_direct_replies(view: View) -> bool:
    """Return whether the broker may count answers to direct reply-to as dropped that it delivered."""
    return view.version is not None and view.version < _COUNTS_DIRECT_REPLIES


def may_be_direct_replies(view: View, lossy: LossyExchange, losers: Sequence[ActivePublisher]) -> bool:
    """Return whether the broker may count answers as dropped that it delivered: direct reply-to has no other counter.

    All whose messages it may be consume on the same connection, so they may be servers. And clients that consume from
    no queue are sent as many packets: those of their answers, or confirms.
    """
    if not counts_direct_replies(view):
        return False
    serving = {view.connection_of(each.channel_name or "") for each in view.every_consumer}
    if not losers or not all(each.channel.connection_name in serving for each in losers):
        return False
    return sum(_packets_sent(view, name) for name in _requesters(view, lossy)) >= _ANSWERED * lossy.rate


def _requesters(view: View, lossy: LossyExchange) -> list[str]:
    """Return the connections that consume from no queue: with direct reply-to, requesters do not."""
    serving = {view.connection_of(each.channel_name or "") for each in view.every_consumer}
    vhost = lossy.exchange.vhost
    return [each.name for each in view.connections if each.vhost == vhost and each.name not in serving]


def answers_arrive(view: View, lossy: LossyExchange, losers: Sequence[ActivePublisher]) -> bool:
    """Return whether clients that consume from no queue are sent as many packets as answers are said to be dropped.

    Confirms, returned messages and polls are packets, too; they are counted, and left out.
    """
    requesters = set(_requesters(view, lossy))
    counted: dict[str, float] = defaultdict(float)
    for channel in view.channels:
        history = view.channel_history(channel.name) if channel.connection_name in requesters else ()
        counted[channel.connection_name or ""] += delta(history, *_PACKETS) / span(history) if span(history) else 0.0
    sent = {name: _packets_sent(view, name) for name in requesters}
    # One packet may confirm several messages, and both are read at other times: what is mostly counted is no answer.
    answers = sum(packets - counted[name] for name, packets in sent.items() if packets >= _MOSTLY * counted[name])
    # The exchange was read at other times than the clients.
    histories = [view.channel_history(each.channel.name) for each in losers]
    dropped = sum(delta(each, "drop_unroutable") / span(each) for each in histories if span(each))
    low, high = _AS_MANY
    return 0 < low * dropped <= answers <= high * dropped


def _packets_sent(view: View, connection: str) -> float:
    """Return how many packets a second the broker sent to a connection, where it was read twice."""
    history = view.connection_history(connection)
    seconds = span(history)
    return ((history[-1].value.send_cnt or 0) - (history[0].value.send_cnt or 0)) / seconds if seconds else 0.0
