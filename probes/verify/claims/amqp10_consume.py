"""Claims about consuming over AMQP 1.0: credit, the four outcomes, counts, dead letters, annotations."""

from collections.abc import Sequence
from typing import Any

from probes.amqp10.connection import Amqp10Connection, library
from probes.amqp10.links import Amqp10Receiver, Received
from probes.verify.amqp10 import FIRST_VERSION, GROUP, Amqp10Ground, check_of, verdict
from probes.verify.fixtures import ready
from probes.verify.sources import AMQP10, DEAD_LETTERS, FLOW, MODIFIED, OASIS, QUORUM
from probes.verify.verify_claim import Observed, VerifyClaim

_KINDS = ("classic", "quorum")
_COUNTED_BEFORE_43 = (
    "before RabbitMQ 4.3 the limit of a quorum queue counts every return: the guide on quorum queues says that "
    "the limit is based on delivery-count, and not on acquired-count, only since 4.3"
)


async def credit(ground: Amqp10Ground) -> Observed:
    """Check claim A10."""
    evidence, holds = [], True
    for kind in _KINDS:
        queue = await ground.queue(f"a10.{kind}", kind)
        await ground.fill(queue, 10)
        receiver = await ground.consume(queue, 3)
        counts = []
        for more in (0, 2, 1):
            if more:
                receiver.ask(more)
            await ground.used_up(receiver)
            await ground.channel.look(queue)
            counts.append(len(receiver.deliveries))
        holds = holds and counts == [3, 5, 6]
        evidence.append(f"{kind}, credit 3, then 2 and 1 more, nothing settled: {counts} delivered")
    return verdict(
        holds=holds,
        so="as many messages as credit, whether settled or not",
        otherwise="more or fewer messages than credit",
        evidence=evidence,
    )


async def drain(ground: Amqp10Ground) -> Observed:
    """Check claim A11."""
    evidence, holds = [], True
    for kind in _KINDS:
        queue = await ground.queue(f"a11.{kind}", kind)
        await ground.fill(queue, 2)
        receiver = await ground.consume(queue)
        receiver.drain(10)
        done = await ground.used_up(receiver)
        came = len(receiver.deliveries)
        holds = holds and done and came == 2
        evidence.append(f"{kind}, 2 messages, 10 credits: {came} delivered, {receiver.credit} credits left")
    return verdict(
        holds=holds,
        so="all available messages come, and the rest of the credit is used up",
        otherwise="credit was left, or messages were",
        evidence=evidence,
    )


async def pause(ground: Amqp10Ground) -> Observed:
    """Check claim A12."""
    queue = await ground.queue("a12")
    receiver = await ground.consume(queue)
    await ground.fill(queue, 3)
    await ground.channel.look(queue)
    idle = len(receiver.deliveries)
    receiver.ask(2)
    resumed = len(await ground.deliveries(receiver, 2))
    await ground.fill(queue, 2)
    await ground.channel.look(queue)
    paused = len(receiver.deliveries)
    receiver.ask(10)
    everything = len(await ground.deliveries(receiver, 5))
    counts = [idle, resumed, paused, everything]
    return verdict(
        holds=counts == [0, 2, 2, 5],
        so="without credit it gets nothing, with credit it goes on, on the same link",
        otherwise="messages came without credit, or none with it",
        evidence=(f"delivered without credit, with 2, used up again, with 10 more: {counts}",),
    )


async def accept(ground: Amqp10Ground) -> Observed:
    """Check claim A13."""
    evidence, holds = [], True
    for kind in _KINDS:
        queue = await ground.queue(f"a13.{kind}", kind)
        await ground.fill(queue, 3)
        receiver = await ground.consume(queue, 2)
        for received in await ground.deliveries(receiver, 2):
            receiver.accept(received)
        await ground.link.detach(receiver)
        left = await ready(ground.channel, queue, 1)
        holds = holds and left == 1
        evidence.append(f"{kind}, 2 of 3 accepted, then the link closed: {left} left")
    return verdict(
        holds=holds,
        so="accepted messages are deleted, and do not come back",
        otherwise="an accepted message was still there",
        evidence=evidence,
    )


async def reject(ground: Amqp10Ground) -> Observed:
    """Check claim A14."""
    return await _refused(ground, "a14", Amqp10Receiver.reject, "rejected")


async def undeliverable(ground: Amqp10Ground) -> Observed:
    """Check claim A17."""
    return await _refused(ground, "a17", lambda link, it: link.modify(it, undeliverable=True), "rejected")


async def _refused(ground: Amqp10Ground, id_: str, refuse: Any, reason: str) -> Observed:
    evidence, holds = [], True
    for kind in _KINDS:
        dead = await ground.queue(f"{id_}.{kind}.dead", "classic")
        plain = await ground.queue(f"{id_}.{kind}.plain", kind)
        onward = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        queue = await ground.queue(f"{id_}.{kind}", kind, onward)
        for name in (plain, queue):
            await ground.fill(name, 1)
            receiver = await ground.consume(name, 1)
            for received in await ground.deliveries(receiver, 1):
                refuse(receiver, received)
            await ground.settled_so_far(receiver)
        dropped, moved = await ready(ground.channel, plain, 0), await ready(ground.channel, dead, 1)
        deaths = _deaths(await ground.deliveries(await ground.consume(dead, 1), 1))
        first = deaths[0].get("reason") if deaths else None
        holds = holds and (dropped, moved, first) == (0, 1, reason)
        evidence.append(
            f"{kind}: {dropped} left without a dead-letter exchange; with one, {moved} dead letter, reason {first}"
        )
    return verdict(
        holds=holds,
        so="dropped where nothing is set, in the dead-letter queue where an exchange is",
        otherwise="the message went elsewhere",
        evidence=evidence,
    )


async def release(ground: Amqp10Ground) -> Observed:
    """Check claim A15."""
    return await _given_back(ground, "a15", Amqp10Receiver.release)


async def modify(ground: Amqp10Ground) -> Observed:
    """Check claim A16."""
    return await _given_back(ground, "a16", lambda link, it: link.modify(it))


async def _given_back(ground: Amqp10Ground, id_: str, give: Any) -> Observed:
    evidence, holds = [], True
    for kind in _KINDS:
        queue = await ground.queue(f"{id_}.{kind}", kind)
        await ground.fill(queue, 1)
        receiver = await ground.consume(queue, 1)
        for received in await ground.deliveries(receiver, 1):
            give(receiver, received)
        receiver.ask(1)
        same = len(await ground.deliveries(receiver, 2)) - 1
        for received in receiver.deliveries[1:]:
            give(receiver, received)
        other = await ground.consume(queue, 1)
        another = len(await ground.deliveries(other, 1))
        holds = holds and (same, another) == (1, 1)
        evidence.append(f"{kind}: given back twice; {same} to the same consumer, then {another} to another one")
    return verdict(
        holds=holds,
        so="requeued, and delivered to the same consumer or another one",
        otherwise="not delivered again",
        evidence=evidence,
    )


async def annotate(ground: Amqp10Ground) -> Observed:
    """Check claim A18."""
    symbol, found = library().symbol, {}
    for kind in _KINDS:
        queue = await ground.queue(f"a18.{kind}", kind)
        await ground.fill(queue, 1)
        receiver = await ground.consume(queue, 1)
        for received in await ground.deliveries(receiver, 1):
            receiver.modify(received, annotations={symbol("x-opt-why"): "busy"})
        receiver.ask(1)
        again = (await ground.deliveries(receiver, 2))[1:]
        found[kind] = [received.annotations.get("x-opt-why") for received in again]
    return verdict(
        holds=found == {"classic": [None], "quorum": ["busy"]},
        so="kept by a quorum queue, and not by a classic queue",
        otherwise="annotations were kept otherwise",
        evidence=tuple(f"{kind}: annotation {values} at the next delivery" for kind, values in found.items()),
    )


async def counted(ground: Amqp10Ground) -> Observed:
    """Check claim A19."""
    found = await _counts(ground, "a19", lambda received: received.delivery_count)
    expected = {"released": 0, "modified": 0, "modified, delivery-failed": 1, "connection lost": 1}
    return verdict(
        holds=found == expected,
        so="only a failed delivery counts: modified with delivery-failed, or a lost connection",
        otherwise="other returns are counted too",
        evidence=tuple(f"{what}: delivery-count {count} at the next delivery" for what, count in found.items()),
        because=_COUNTED_BEFORE_43 if ground.context.version < (4, 3, 0) else "",
    )


async def acquired(ground: Amqp10Ground) -> Observed:
    """Check claim A20."""
    found = await _counts(ground, "a20", lambda received: received.annotations.get("x-acquired-count"))
    return verdict(
        holds=set(found.values()) == {1},
        so="every return counts",
        otherwise="some returns do not count",
        evidence=tuple(f"{what}: x-acquired-count {count} at the next delivery" for what, count in found.items()),
    )


async def _counts(ground: Amqp10Ground, id_: str, look: Any) -> dict[str, Any]:
    """Give a message back in every way. Returns what the next delivery of each says; None without one."""
    ways: dict[str, Any] = {
        "released": Amqp10Receiver.release,
        "modified": lambda link, it: link.modify(it),
        "modified, delivery-failed": lambda link, it: link.modify(it, failed=True),
        "connection lost": None,
    }
    found: dict[str, Any] = {}
    for number, (what, give) in enumerate(ways.items()):
        queue = await ground.queue(f"{id_}.{number}")
        await ground.fill(queue, 1)
        other = await Amqp10Connection.open(ground.context.server, f"ackscope-verify {id_} (closed on purpose)")
        try:
            receiver = await ground.consume(queue, 1, other)
            await _got_one(other, receiver)
            if give is not None:
                for received in receiver.deliveries:
                    give(receiver, received)
                await other.detach(receiver)
        finally:
            if give is None:
                other.cut()
            await other.close()
        again = await ground.deliveries(await ground.consume(queue, 1), 1)
        found[what] = look(again[0]) if again else None
    return found


async def _got_one(link: Amqp10Connection, receiver: Amqp10Receiver) -> None:
    await link.until(lambda: bool(receiver.deliveries))


async def limit(ground: Amqp10Ground) -> Observed:
    """Check claim A21."""
    found = {}
    ways: dict[str, Any] = {"released": Amqp10Receiver.release, "failed": lambda link, it: link.modify(it, failed=True)}
    for what, give in ways.items():
        queue = await ground.queue(f"a21.{what}", "quorum", {"x-delivery-limit": 2})
        await ground.fill(queue, 1)
        receiver = await ground.consume(queue)
        for _ in range(5):
            before = len(receiver.deliveries)
            receiver.drain(1)
            await ground.used_up(receiver)
            for received in receiver.deliveries[before:]:
                give(receiver, received)
        found[what] = len(receiver.deliveries)
    return verdict(
        holds=found == {"released": 5, "failed": 3},
        so="dropped after the limit of failed deliveries; released messages come again without end",
        otherwise="the limit counts otherwise",
        evidence=tuple(f"limit 2, {what} each time, 5 tries: delivered {count} times" for what, count in found.items()),
        because=_COUNTED_BEFORE_43 if ground.context.version < (4, 3, 0) else "",
    )


async def deaths(ground: Amqp10Ground) -> Observed:
    """Check claim A22."""
    dead = await ground.queue("a22.dead", "classic")
    middle = await ground.queue(
        "a22.middle", "quorum", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, "x-message-ttl": 50}
    )
    onward = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": middle}
    queue = await ground.queue("a22", "quorum", onward)
    await ground.fill(queue, 1)
    receiver = await ground.consume(queue, 1)
    for received in await ground.deliveries(receiver, 1):
        receiver.reject(received)
    entries = _deaths(await ground.deliveries(await ground.consume(dead, 1), 1))
    reasons = [(entry.get("reason"), entry.get("queue"), entry.get("count")) for entry in entries]
    wanted = {"queue", "reason", "count", "exchange", "routing-keys", "first-time", "last-time"}
    complete = all(wanted <= set(entry) for entry in entries)
    return verdict(
        holds=reasons == [("expired", middle, 1), ("rejected", queue, 1)] and complete,
        so="an array of maps, the most recent death first",
        otherwise="another content or order",
        evidence=(f"rejected, then expired: {[reason for reason, *_ in reasons]}", f"keys complete: {complete}"),
    )


async def origin(ground: Amqp10Ground) -> Observed:
    """Check claim A23."""
    exchange = await ground.context.exchange(ground.channel, "a23.topic", "topic")
    queue = await ground.queue("a23", "classic")
    await ground.channel.bind(queue, exchange, "a.*")
    await ground.publish(await ground.link.sender(f"/exchanges/{exchange}/a.b"), b"x")
    ground.channel.publish("a.c", b"x", exchange=exchange)
    came = await ground.deliveries(await ground.consume(queue, 2), 2)
    found = [(it.annotations.get("x-exchange"), it.annotations.get("x-routing-key")) for it in came]
    return verdict(
        holds=found == [(exchange, "a.b"), (exchange, "a.c")],
        so="exchange and routing key are reported, whichever protocol published",
        otherwise="annotations are missing or differ",
        evidence=(f"published over 1.0 and over 0-9-1: routing keys {[key for _, key in found]}",),
    )


async def first_acquirer(ground: Amqp10Ground) -> Observed:
    """Check claim A24."""
    found = {}
    for kind in _KINDS:
        queue = await ground.queue(f"a24.{kind}", kind)
        await ground.fill(queue, 1)
        receiver = await ground.consume(queue, 1)
        for received in await ground.deliveries(receiver, 1):
            receiver.release(received)
        receiver.ask(1)
        found[kind] = [received.first_acquirer for received in await ground.deliveries(receiver, 2)]
    return verdict(
        holds=all(flags == [True, False] for flags in found.values()),
        so="true at the first delivery, false after that",
        otherwise="set otherwise",
        evidence=tuple(f"{kind}: {flags}" for kind, flags in found.items()),
    )


async def immutable(ground: Amqp10Ground) -> Observed:
    """Check claim A25."""
    queue = await ground.queue("a25")
    sender = await ground.sender(queue)
    fields = {"durable": True, "priority": 4, "id": "id-1", "subject": "subject", "properties": {"n": 5, "s": "text"}}
    await ground.publish(sender, b"body", **fields)
    came = await ground.deliveries(await ground.consume(queue, 1), 1)
    found = {name: getattr(came[0].message, name) for name in fields} | {"body": came[0].body} if came else {}
    return verdict(
        holds=found == {**fields, "body": b"body"},
        so="properties, application properties and body arrive as they were sent",
        otherwise="the message was changed",
        evidence=(f"sent and received: {sorted(found)}",) if found else ("nothing was delivered",),
    )


def _deaths(received: Sequence[Received]) -> list[dict[str, Any]]:
    entries = received[0].annotations.get("x-opt-deaths") if received else None
    return [
        {str(key): str(value) if isinstance(value, str) else value for key, value in entry.items()}
        for entry in entries or []
    ]


def _claim(
    id_: str, name: str, documented: str, check: Any, source: str = AMQP10, since: Sequence[int] = FIRST_VERSION
) -> VerifyClaim:
    return VerifyClaim(
        id=id_, name=name, group=GROUP, documented=documented, source=source, check=check_of(id_, check, since)
    )


CLAIMS = (
    _claim("A10", "link-credit", "A consumer gets as many messages as it gave credit for, and no more.", credit, FLOW),
    _claim("A11", "drain", "A drain delivers what is available, and uses up the rest of the credit.", drain, OASIS),
    _claim("A12", "pause-and-resume", "A consumer can stop and later go on, on the same link.", pause, AMQP10),
    _claim("A13", "accepted-deletes", "A message that the consumer accepted is deleted.", accept),
    _claim(
        "A14",
        "rejected-dead-letters",
        "A message that the consumer rejected is dead-lettered, or dropped if that is not configured.",
        reject,
    ),
    _claim(
        "A15",
        "released-requeues",
        "A message that the consumer released is requeued, and delivered to the same consumer or another one.",
        release,
    ),
    _claim("A16", "modified-requeues", "A modified message is requeued if undeliverable-here is false.", modify),
    _claim(
        "A17",
        "undeliverable-here",
        "A modified message is dead-lettered, or dropped, if undeliverable-here is true.",
        undeliverable,
    ),
    _claim(
        "A18",
        "modified-annotations",
        "The modified outcome changes message annotations in quorum queues, and not in classic queues.",
        annotate,
        f"{AMQP10}; {MODIFIED}",
    ),
    _claim(
        "A19",
        "delivery-count",
        "A quorum queue counts failed deliveries: modified with delivery-failed, or a lost connection; and no others.",
        counted,
        QUORUM,
    ),
    _claim(
        "A20",
        "acquired-count",
        "Since 4.3, x-acquired-count counts how often a message of a quorum queue was given to a consumer.",
        acquired,
        QUORUM,
        (4, 3, 0),
    ),
    _claim(
        "A21",
        "delivery-limit",
        "The delivery limit of a quorum queue counts failed deliveries, and no messages that were released.",
        limit,
        QUORUM,
    ),
    _claim(
        "A22",
        "deaths-annotation",
        "A dead letter has the annotation x-opt-deaths: an array of maps, the most recent death first.",
        deaths,
        DEAD_LETTERS,
    ),
    _claim(
        "A23",
        "origin-annotations",
        "Each delivery has the annotations x-exchange and x-routing-key, of the original publish.",
        origin,
    ),
    _claim(
        "A24",
        "first-acquirer",
        "The header first-acquirer is true if no other consumer had the message before.",
        first_acquirer,
        OASIS,
    ),
    _claim("A25", "bare-message", "The properties and the body of a message are not changed on its way.", immutable),
)
