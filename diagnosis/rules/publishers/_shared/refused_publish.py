"""Infers which errors may make the broker close a channel at each publish, or at some, in a loop.

The management API shows no reason. It shows how long the broker's error text was and how much the client sent (see
`diagnosis.churn_loops`). An error text of that length, for an exchange that exists or has disappeared, is a likely
cause but no proof; the broker's log has the text. `refused_properties` lists all texts.

Who asks for permissions must be an administrator, so they are not known. But an exchange to which each client of the
virtual host is the same user, and which gets messages now, is one that this user may write. And nobody publishes to an
`amq.` exchange that nothing is bound to.
"""

from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, ExchangeRef, Fact, Finding, Involved, Severity, Unit, source
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles, text_bytes
from diagnosis.contract import View
from diagnosis.loop_counts import has_no_channels
from diagnosis.memo import per_view
from diagnosis.rules.clients._shared.loops import MIN_PER_CYCLE
from diagnosis.rules.clients._shared.not_found import not_found
from diagnosis.rules.clients._shared.refusals import access_words, refusal
from diagnosis.rules.consumers._shared.comings import seen_connections
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in
from diagnosis.rules.publishers._shared.refused_properties import RefusedProperty, refused_properties
from diagnosis.series import last, readings_since

# Fewer events per cycle count as none, because the broker refreshes counters at different times.
NONE_PER_CYCLE = 1 / 3
# Bytes of the frames of a publish with an empty exchange name and key, with its channel opened and closed.
_FRAME_BYTES = 72
# Bytes of those that are the publish itself.
_PUBLISH_BYTES = 47
FAST_REPLY = "PRECONDITION_FAILED - fast reply consumer does not exist"
"""The error of a request over direct reply-to whose channel does not consume from it. It counts no publish, either."""
_TOO_LARGE = "PRECONDITION_FAILED - message size  is larger than configured max size "
# Digits of both sizes in that text together.
_DIGITS = range(12, 23)
# Messages in the bytes of a channel up to which more that are counted are of other clients, and how many times more.
_FEW_MESSAGES, _MARGIN = 4, 1.5
# Bytes of the longest request of a consumer, with basic.qos and names of a usual length.
_MOST_REQUEST = 200
# Bytes that no consumer sends on a channel that is refused, also if it declares and binds queues before.
MOST_OF_CONSUMER = 400
# Bytes of the longest name that an exchange is assumed to have.
_MAX_NAME_BYTES = 100
# Packets in the latest readings that show that the loop continues: one cycle. A heartbeat is one packet.
_MIN_PACKETS = 2
_RECENT_SECONDS = 10.0
# Bytes of the longest routing key that a refused topic is assumed to have.
_MAX_KEY_BYTES = 80
# A missing exchange with a longer name is reported only if no refused publish explains the text better.
_LIKELY_NAME_BYTES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPublish:
    """A connection whose channel is closed at each publish, or at some.

    Attributes:
        error_bytes: length of the text with which the broker closes its channels.
        received_bytes: bytes that the client sent for each channel.
        oversized: whether bytes sent and length of the text show that the messages are too large.
        forbidden: exchanges for which the refusal of this user would have the length of the text.
        topics: topic exchanges for which the refusal of a routing key of this user may have that length. Empty if
            another explains it.
        unlikely: exchanges of such a length that the user may write, or that nobody uses.
        only_unused: whether nobody uses any of the forbidden exchanges.
        properties: properties of a message whose refusal may have that length.
        disappeared: exchanges that were deleted within the window, and whose absence gives a text of that length; they
            may be back.
        auto_deleted: whether the broker deletes one of them with its last binding.
        recurs_seconds: since when the first of them was missing; 0 without one.
        missing_name_bytes: length of the name of a missing exchange that would give the text; 0 if none would.
        queue_bytes: length of the name of a missing queue whose consumer would send as many bytes; 0 if none would.
        readable: whether the refusal of a consumer of some queue would have the length of the text, too.
        mingled: whether the cluster counts messages of clients that have no lasting channel, beside those of this one.
    """

    closing: ChurnLoop
    error_bytes: int
    received_bytes: float
    oversized: bool
    forbidden: tuple[str, ...]
    topics: tuple[str, ...]
    disappeared: tuple[str, ...]
    missing_name_bytes: int
    unlikely: tuple[str, ...] = ()
    only_unused: bool = False
    properties: tuple[RefusedProperty, ...] = ()
    auto_deleted: bool = False
    recurs_seconds: float = 0.0
    queue_bytes: int = 0
    readable: bool = False
    mingled: bool = False

    @property
    def accepted(self) -> float | None:
        """Messages that the broker accepts on each channel before it closes it; None if that is unknown.

        Those of the cluster are counted. If the bytes of a channel have no room for them, other clients publish them;
        and lasting channels may publish as many as are late in their counters.
        """
        name = min((text_bytes(name) for name in self.forbidden if name != "amq.default"), default=0)
        room = (self.received_bytes - _FRAME_BYTES + _PUBLISH_BYTES) / (_PUBLISH_BYTES + name)
        if self.closing.published < MIN_PER_CYCLE or room < 2:
            return 0.0
        # The bytes of a long channel are less certain.
        of_others = room < _FEW_MESSAGES and self.closing.published > _MARGIN * room
        of_others |= self.closing.published - self.closing.published_unsure < MIN_PER_CYCLE
        if of_others or (self.mingled and self.forbidden):
            return None
        return self.closing.published if self.closing.alone and self.closing.by_broker else None

    @property
    def is_forbidden(self) -> bool:
        """Whether a refused permission explains the error better than a missing exchange."""
        return bool(self.forbidden or self.topics) and not (self.oversized or self.disappeared or self.is_missing)

    @property
    def is_property(self) -> bool:
        """Whether a refused property explains the error better than an exchange.

        Where the broker accepts other messages of the channel, a missing exchange would be a second one. Where it
        accepts none, only its size distinguishes a message from a request of a consumer.
        """
        if self.oversized or self.disappeared or self.is_forbidden or not self.properties:
            return False
        if self.accepted:
            return True
        readable = self.readable and self.received_bytes <= MOST_OF_CONSUMER
        return self.received_bytes > _MOST_REQUEST and not (self.is_missing or readable)

    @property
    def may_be_property(self) -> bool:
        """Whether a refused property explains the error as well as a refused exchange."""
        return bool(self.properties) and (self.accepted != 0 or self.only_unused)

    @property
    def is_missing(self) -> bool:
        """Whether a missing exchange with a name of a usual length would give the text."""
        return 0 < self.missing_name_bytes <= _LIKELY_NAME_BYTES


def refused_publishes(view: View) -> tuple[RefusedPublish, ...]:
    """Connections whose channels the broker closes in a loop while they publish, and do nothing else."""
    return per_view(view, _refused)


def refused_finding(
    view: View, rule: str, each: RefusedPublish, exchanges: tuple[str, ...] = (), warning_after: float | None = None
) -> Finding:
    """Return the finding for one connection: information at first, because an application under repair looks the same.

    Args:
        view: the view that is being judged.
        rule: its name.
        each: the connection.
        exchanges: to which it probably publishes.
        warning_after: seconds after which it is a warning; None for the time that such an application takes.
    """
    closing = each.closing
    there = closing.connection
    if warning_after is None:
        warning_after = view.thresholds.publishers.closing_after
    # An exchange that comes and goes is missing again and again.
    lasts = max(closing.lasts, each.recurs_seconds)
    late = lasts >= warning_after
    vhost = there.vhost or "/"
    forbidden: list[Fact] = list(each.forbidden or each.topics)
    published = Evidence(
        key="refused_published", value=closing.published, source=source("/api/overview", "message_stats.publish")
    )
    return Finding(
        rule=rule,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=closing.subject,
        since=closing.since.iso(),
        facts={
            "client": closing.client,
            "peer": closing.peer,
            "user": there.user,
            "vhost": vhost,
            "node": there.node,
            "connection": there.name,
            "cycle_rate": closing.rate,
            "error_bytes": each.error_bytes,
            "received_bytes": each.received_bytes,
            "missing_name_bytes": each.missing_name_bytes,
            "queue_bytes": each.queue_bytes,
            "disappeared_exchanges": list(each.disappeared),
            "returned": any((vhost, name) in {it.key for it in view.exchanges} for name in each.disappeared),
            "auto_deleted": each.auto_deleted,
            "refused_exchanges": forbidden,
            "topic": bool(each.topics),
            "unlikely_exchanges": list(each.unlikely),
            "properties": [it.facts() for it in each.properties],
            "may_be_property": each.may_be_property,
            "accepted_per_channel": each.accepted,
            "fast_reply": each.error_bytes == len(FAST_REPLY) and not each.disappeared,
            "warning_after_seconds": warning_after,
        },
        evidence=(
            Evidence(
                key="refused_channels",
                value=closing.rate,
                unit=Unit.PER_SECOND,
                source=source("/api/overview", "churn_rates.channel_created", "churn_rates.channel_closed")
                + source("/api/connections"),
            ),
            *([] if each.mingled else [published]),
            Evidence(
                key="refused_error",
                value=each.error_bytes,
                unit=Unit.BYTES,
                source=source("/api/connections", "send_oct", "send_cnt"),
            ),
            Evidence(
                key="refused_received",
                value=each.received_bytes,
                unit=Unit.BYTES,
                source=source("/api/connections", "recv_oct"),
            ),
        ),
        involved=Involved(
            connections=(there.name,),
            clients=(there.client_name,) if there.client_name else (),
            exchanges=tuple(ExchangeRef(vhost, name) for name in exchanges),
        ),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=lasts,
    )


def _refused(view: View) -> tuple[RefusedPublish, ...]:
    found = []
    for closing in churn_loops(view):
        if closing.whole or closing.lasts < view.thresholds.early or not _continues(view, closing):
            continue
        # The bytes of a loop that the broker ends have no room for messages: other clients got them.
        others = closing.declares if closing.by_broker else max(closing.declares, closing.delivered, closing.acked)
        idle = max(others, closing.published) < NONE_PER_CYCLE
        each = _classify(view, closing)
        if closing.by_broker is None and not each.oversized and not each.disappeared:
            # The text may be the name of a queue or a consumer tag.
            continue
        # The cluster's counters may include other clients. This many bytes before such a short answer are a publish.
        if (
            each.oversized
            or ((idle or not closing.alone) and (each.is_forbidden or each.missing_name_bytes or each.is_property))
            # No other error has this length and names what was deleted.
            or (each.disappeared and closing.by_broker)
            or ((each.is_forbidden or each.is_property) and each.accepted is not None and others < NONE_PER_CYCLE)
            or (each.is_forbidden and each.forbidden and each.mingled and closing.declares < NONE_PER_CYCLE)
        ):
            found.append(each)
    return tuple(found)


def _continues(view: View, closing: ChurnLoop) -> bool:
    """Return whether the broker answered recently.

    It refreshes its counters every 5 s, so one of two readings may show no answer; a slow loop has none in many.
    """
    recent = last(view.connection_history(closing.connection.name), max(_RECENT_SECONDS, 2 / closing.rate))
    return (recent[-1].value.send_cnt or 0) - (recent[0].value.send_cnt or 0) >= _MIN_PACKETS if recent else False


def _classify(view: View, closing: ChurnLoop) -> RefusedPublish:
    vhost = closing.connection.vhost or "/"
    error, received = closing.error or 0, closing.received or 0.0
    missing = error - text_bytes(_not_found_text("", vhost))
    # Fewer bytes than a publish takes are something else, such as an acknowledgement.
    if not 0 < missing <= _MAX_NAME_BYTES or received < _FRAME_BYTES + missing:
        missing = 0
    missed = {name: since for name, since in _disappeared(view, vhost).items() if text_bytes(name) == missing}
    gone = tuple(sorted(missed))
    queue = not_found(view, closing) if not gone else None
    if queue is not None and (queue.queues or queue.alike):
        # The consumer of that queue gets an error of this length.
        missing = 0
    large = received >= view.thresholds.publishers.closing_bytes
    fits = _forbidden(view, closing, error, received)
    properties: tuple[RefusedProperty, ...] = ()
    if closing.connection.user and received >= _FRAME_BYTES:
        properties = tuple(refused_properties(error, closing.connection.user))
    unlikely = [name for name in fits if _is_writable(view, closing, name)]
    unused = [name for name in fits if name not in unlikely and _is_unused(view, vhost, name)]
    only_unused = bool(unused) and len(unlikely) + len(unused) == len(fits)
    if properties and (closing.published >= MIN_PER_CYCLE or not only_unused):
        unlikely += unused
    forbidden = tuple(name for name in fits if name not in unlikely)
    return RefusedPublish(
        closing=closing,
        error_bytes=error,
        received_bytes=received,
        oversized=large and error - text_bytes(_TOO_LARGE) in _DIGITS,
        forbidden=forbidden,
        topics=() if fits else _topics(view, closing, error, received, unused=not properties),
        unlikely=tuple(unlikely),
        only_unused=only_unused and bool(forbidden),
        properties=properties,
        disappeared=gone,
        auto_deleted=any(_is_auto_deleted(view, vhost, name) for name in gone),
        recurs_seconds=max((view.now.since(since) for since in missed.values()), default=0.0),
        missing_name_bytes=missing,
        queue_bytes=queue.queue_bytes if missing and queue is not None else 0,
        readable=_readable(view, closing),
        mingled=_mingled(view),
    )


def _mingled(view: View) -> bool:
    """Return whether clients without a lasting channel are connected or come and go, as devices with MQTT do."""
    cycles = cluster_cycles(view)
    brief = cycles is not None and cycles.channels is not None
    return brief or any(has_no_channels(view, connection) for connection in view.connections)


def _readable(view: View, closing: ChurnLoop) -> bool:
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    words = access_words(view, "read")
    names = (queue.name for queue in view.all_queues if queue.vhost == vhost)
    return any(closing.said(*(refusal(word, "queue", name, vhost, user) for word in words)) for name in names)


def _not_found_text(name: str, vhost: str) -> str:
    return f"NOT_FOUND - no exchange '{name}' in vhost '{vhost}'"


def _forbidden(view: View, closing: ChurnLoop, error: int, received: float) -> tuple[str, ...]:
    """Exchanges to which this user may not write, by the length of the text that the broker would send."""
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    names = sorted({exchange.name or "amq.default" for exchange in view.exchanges if exchange.vhost == vhost})
    return tuple(
        name
        for name in names
        if error in {text_bytes(refusal(word, "exchange", name, vhost, user)) for word in access_words(view, "write")}
        and received >= _FRAME_BYTES + (0 if name == "amq.default" else text_bytes(name))
    )


def _is_writable(view: View, closing: ChurnLoop, name: str) -> bool:
    """Return whether this user publishes to an exchange now: it gets messages, and each client is this user."""
    vhost, user = closing.connection.vhost or "/", closing.connection.user
    clients = [each for each in seen_connections(view).values() if each.vhost in (None, vhost)]
    if user is None or any(each.user != user or each.vhost is None for each in clients):
        return False
    key = (vhost, "" if name == "amq.default" else name)
    meanwhile = readings_since(exchange_histories(view).get(key, ()), closing.since.mono)
    return len(meanwhile) > 1 and messages_in(meanwhile) > 0


def _is_unused(view: View, vhost: str, name: str) -> bool:
    """Return whether an exchange is one of each virtual host, has no binding, and never got a message."""
    if view.bindings is None or not name.startswith("amq.") or name == "amq.default":
        return False
    used = any((each.vhost, each.source) == (vhost, name) for each in view.bindings)
    return not used and not any(each.key == (vhost, name) and each.stats.publish_in for each in view.exchanges)


def _topics(view: View, closing: ChurnLoop, error: int, received: float, *, unused: bool) -> tuple[str, ...]:
    """Topic exchanges of which this user may not write one routing key, whose length would give the text."""
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    known = [each for each in view.exchanges if each.vhost == vhost and each.type == "topic"]
    known = [each for each in known if unused or not _is_unused(view, vhost, each.name)]
    if closing.published >= MIN_PER_CYCLE:
        # Other keys of the client are accepted, so its exchange has received messages.
        known = [each for each in known if each.stats.publish_in] or known
    names = sorted({each.name for each in known})
    found = []
    for name in names:
        shortest = min(text_bytes(_topic_text(word, name, vhost, user)) for word in access_words(view, "write"))
        key = error - shortest
        if 0 < key <= _MAX_KEY_BYTES and received >= _FRAME_BYTES + text_bytes(name) + key:
            found.append(name)
    return tuple(found)


def _topic_text(word: str, name: str, vhost: str, user: str) -> str:
    return (
        f"ACCESS_REFUSED - {word}access to topic '' in exchange '{name}' in vhost '{vhost}' refused for user '{user}'"
    )


def _disappeared(view: View, vhost: str) -> dict[str, Instant]:
    """Return the exchanges of a virtual host that were deleted within the window, and when each was first missing."""
    found: dict[str, Instant] = {}
    known: set[str] = set()
    for seen in view.window.readings("exchanges"):
        here = {exchange.name for exchange in seen.value if exchange.vhost == vhost}
        found |= {name: seen.at for name in known - here if name not in found}
        known |= here
    return found


def _is_auto_deleted(view: View, vhost: str, name: str) -> bool:
    readings = view.window.readings("exchanges")
    return any(each.key == (vhost, name) and each.auto_delete for seen in readings for each in seen.value)
