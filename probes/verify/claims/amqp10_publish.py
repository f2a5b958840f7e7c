"""Claims about publishing over AMQP 1.0: the outcome of each message, addresses, messages sent settled."""

from probes.amqp10.connection import queue_address
from probes.amqp10.links import LinkEnded
from probes.verify.amqp10 import GROUP, Amqp10Check, Amqp10Ground, check_of, verdict
from probes.verify.fixtures import ready
from probes.verify.sources import AMQP10, OASIS
from probes.verify.verify_claim import Observed, VerifyClaim


async def accepted(ground: Amqp10Ground) -> Observed:
    """Check claim A01."""
    exchange = await ground.context.exchange(ground.channel, "a01.fanout")
    queues = [await ground.queue(f"a01.{kind}", kind) for kind in ("classic", "quorum", "stream")]
    for queue in queues:
        await ground.channel.bind(queue, exchange)
    sender = await ground.link.sender(f"/exchanges/{exchange}")
    answers = [answer.settlement.value for answer in await ground.publish(sender, *[b"x"] * 3)]
    found = [await ready(ground.channel, queue, 3) for queue in queues[:2]]
    return verdict(
        holds=answers == ["accepted"] * 3 and found == [3, 3],
        so="accepted, and in every queue that the message was routed to",
        otherwise="other outcomes, or a queue lacks an accepted message",
        evidence=(f"3 messages to a classic queue, a quorum queue and a stream: {answers}", f"ready: {found}"),
    )


async def full(ground: Amqp10Ground) -> Observed:
    """Check claim A02."""
    bounds = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = await ground.queue("a02", "classic", bounds)
    sender = await ground.sender(queue)
    # One after the other: the first fills the queue.
    answers = [answer for _ in range(3) for answer in await ground.publish(sender, b"x")]
    outcomes = [answer.settlement.value for answer in answers]
    infos = [answer.info for answer in answers[1:]]
    rejected = outcomes == ["accepted", "rejected", "rejected"]
    detailed = all((info.get("queue"), info.get("reason")) == (queue, "maxlen") for info in infos)
    conditions = {answer.condition for answer in answers[1:] if answer.condition}
    why = ""
    if rejected and ground.context.version < (4, 3, 0):
        why = "the outcome names queue and reason since RabbitMQ 4.3 (pull request 15075 of rabbitmq-server)"
    return verdict(
        holds=rejected and detailed,
        so="rejected, with the name of the queue and the reason maxlen",
        otherwise="rejected without queue and reason" if rejected else f"outcomes {outcomes}",
        evidence=(
            f"a queue with room for one: {', '.join(outcomes)}",
            f"condition {', '.join(sorted(conditions)) or 'absent'}",
            f"queue and reason maxlen in its details: {'yes' if detailed else 'no'}",
        ),
        because=why,
    )


async def unroutable(ground: Amqp10Ground) -> Observed:
    """Check claim A03."""
    exchange = await ground.context.exchange(ground.channel, "a03.direct", "direct")
    queue = await ground.queue("a03", "classic")
    await ground.channel.bind(queue, exchange, "known")
    found = []
    for key in ("known", "unknown"):
        sender = await ground.link.sender(f"/exchanges/{exchange}/{key}")
        found += [f"{key} {answer.settlement.value}" for answer in await ground.publish(sender, b"x")]
    return verdict(
        holds=found == ["known accepted", "unknown released"],
        so="released, and the link lives on",
        otherwise="another outcome",
        evidence=tuple(found),
    )


async def anonymous(ground: Amqp10Ground) -> Observed:
    """Check claim A04."""
    queues = [await ground.queue(f"a04.{number}", "classic") for number in (1, 2)]
    sender = await ground.sender(None)
    found = []
    for queue in queues:
        found += [each.settlement.value for each in await ground.publish(sender, b"x", address=queue_address(queue))]
    counts = [await ready(ground.channel, queue, 1) for queue in queues]
    return verdict(
        holds=(found, counts) == (["accepted"] * 2, [1, 1]),
        so="one link publishes to two queues, by the field `to` of each message",
        otherwise="a message went elsewhere",
        evidence=(f"outcomes {found}", f"ready {counts}"),
    )


async def anonymous_wrong(ground: Amqp10Ground) -> Observed:
    """Check claim A05."""
    sender = await ground.sender(None)
    cases = {"no such exchange": "/exchanges/ackscope.verify.nowhere/x", "no valid address": "/nothing/x"}
    found = {
        what: [each.settlement.value for each in await ground.publish(sender, b"x", address=address)]
        for what, address in cases.items()
    }
    ended = "" if sender.ended is None else str(sender.ended)
    return verdict(
        holds=all(outcome == ["rejected"] for outcome in found.values()) and not ended,
        so="rejected, and the link lives on",
        otherwise=f"the link ended ({ended})" if ended else "another outcome",
        evidence=tuple(f"{what}: {outcome or 'no outcome'}" for what, outcome in found.items()),
    )


async def must_exist(ground: Amqp10Ground) -> Observed:
    """Check claim A06."""
    conditions = []
    for attach in (ground.link.sender, ground.link.receiver):
        try:
            await attach(queue_address(f"{ground.context.prefix}.a06.nowhere"))
            conditions.append("attached")
        except LinkEnded as error:
            conditions.append(error.condition)
    return verdict(
        holds=conditions == ["amqp:not-found"] * 2,
        so="refused with amqp:not-found, as target and as source",
        otherwise="not refused with amqp:not-found",
        evidence=(f"target: {conditions[0]}", f"source: {conditions[1]}"),
    )


async def encoded(ground: Amqp10Ground) -> Observed:
    """Check claim A07."""
    queue = await ground.queue("a07 /%ü", "classic")
    answers = [each.settlement.value for each in await ground.publish(await ground.sender(queue), b"x")]
    came = len(await ground.deliveries(await ground.consume(queue, 1), 1))
    try:
        await ground.link.sender(f"/queues/{queue}")
        raw = "attached"
    except LinkEnded as error:
        raw = f"refused ({error.condition})"
    return verdict(
        holds=answers == ["accepted"] and came == 1 and raw.startswith("refused"),
        so="a name with a slash, a percent sign and a letter beyond ASCII works encoded, and is refused otherwise",
        otherwise="an encoded name does not work, or one that is not encoded does",
        evidence=(f"encoded: {answers}, {came} delivered", f"not encoded: {raw}"),
    )


async def mixed(ground: Amqp10Ground) -> Observed:
    """Check claim A08."""
    queue = await ground.queue("a08", "classic")
    sender = await ground.sender(queue, mixed=True)
    for number, settled in enumerate((True, False, True, False), 1):
        sender.send(ground.link.encode(str(number).encode()), settled=settled)
    await ground.link.until(lambda: len(sender.answers) >= 2)
    count = await ready(ground.channel, queue, 4)
    numbers = [answer.number for answer in sender.answers]
    return verdict(
        holds=numbers == [2, 4] and count == 4,
        so="only messages that were sent unsettled have an outcome; all are in the queue",
        otherwise="other messages were answered",
        evidence=(f"messages 1 and 3 settled, 2 and 4 not: outcomes of {numbers}", f"{count} of 4 in the queue"),
    )


async def deleted(ground: Amqp10Ground) -> Observed:
    """Check claim A09."""
    evidence, holds = [], True
    for kind in ("classic", "quorum"):
        queue = await ground.queue(f"a09.{kind}", kind)
        receiver = await ground.consume(queue, 1)
        await ground.channel.delete(queue)
        await ground.deliveries(receiver, 1)  # or its end
        condition = "not detached" if receiver.ended is None else receiver.ended.condition
        holds = holds and condition == "amqp:resource-deleted"
        evidence.append(f"{kind}: {condition}")
    return verdict(
        holds=holds,
        so="the link of the consumer is detached with amqp:resource-deleted",
        otherwise="not detached, or with another condition",
        evidence=evidence,
    )


def _claim(id_: str, name: str, documented: str, check: Amqp10Check, source: str = AMQP10) -> VerifyClaim:
    return VerifyClaim(
        id=id_,
        name=name,
        group=GROUP,
        documented=documented,
        source=source,
        check=check_of(id_, check),
    )


CLAIMS = (
    _claim(
        "A01",
        "accepted-by-all",
        "A published message is accepted once every queue that it was routed to has it.",
        accepted,
    ),
    _claim(
        "A02",
        "rejected-when-full",
        "A full queue with overflow reject-publish rejects; the error names the queue and the reason maxlen.",
        full,
    ),
    _claim("A03", "released-without-route", "A message that no queue takes is released.", unroutable),
    _claim(
        "A04",
        "anonymous-terminus",
        "A link without a target address publishes each message to where its field `to` says.",
        anonymous,
    ),
    _claim(
        "A05",
        "anonymous-wrong-address",
        "On such a link, a message with an invalid address or an unknown exchange is rejected.",
        anonymous_wrong,
    ),
    _claim("A06", "queue-must-exist", "The queue of a source or target address must exist.", must_exist),
    _claim("A07", "percent-encoding", "Names in addresses have to be percent-encoded.", encoded),
    _claim(
        "A08",
        "settle-mode-mixed",
        "With sender settle mode mixed, a publisher decides for each message whether it gets an outcome.",
        mixed,
    ),
    _claim(
        "A09",
        "detached-when-deleted",
        "The condition amqp:resource-deleted says that what the client was working with has been deleted.",
        deleted,
        OASIS,
    ),
)
