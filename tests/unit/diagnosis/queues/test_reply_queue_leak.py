import pytest

from ackscope.findings import flat
from ackscope.snapshot import Overview
from diagnosis.queue_families import name_pattern
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import of, one

RULE = "reply-queue-leak"
REQUESTER, SERVER = "10.0.0.9:40001 -> 10.0.0.1:5672", "10.0.0.8:40001 -> 10.0.0.1:5672"


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("rpc.reply.05cd243b-35db-44e6-b921-6f27f3a36226", "rpc.reply.*"),
        ("amq.gen-0ix7NedsCy8Jq63HUDivwQ", "amq.gen-*"),
        ("reply-aXk29s", "reply-*"),
        ("answer/QkdLmPsTuvXy", "answer/*"),
        ("billing:reply:deadbeefdeadbeef", "billing:reply:*"),
        ("TempQueue17", "TempQueue*"),
        ("0f3a5c7e9b2d4f6a8c0e1a3b5d7f9012", "*"),
        ("PriceService_reply_1", "PriceService_reply_*"),
        ("orders.created", "orders.created"),
        ("HTTPReply", "HTTPReply"),
    ],
)
def test_the_made_up_parts_of_a_name_are_left_out(name, pattern):
    """Numbers, UUIDs and random tokens."""
    assert pattern == name_pattern(name)


def left(number, *, prefix="answers.", **fields):
    """A queue that got one reply and has no consumer."""
    return queue(f"{prefix}{number:05d}", **{"consumers": 0, "messages_ready": 1, "stats": stats(publish=1), **fields})


def leaking(t, *, stock=60, rate=0.5, begins=0.0, deleted=0, **fields):
    """So many queues that were left behind, and so many more each second; a part of the new ones is deleted soon."""
    more = int(rate * max(0.0, t - begins))
    young = stock + int(rate * max(0.0, t - begins - 12.0))
    names = [n for n in range(stock + more) if n < stock or n >= young or not deleted or n % deleted]
    queues = tuple(left(number, **fields) for number in names)
    requests = int(100 + rate * t)
    mine, theirs = f"{REQUESTER} (1)", f"{SERVER} (1)"
    return {
        "overview": Overview(rabbitmq_version="4.3.6", statistics=True, queues=len(queues) + 1, stats=stats()),
        "queues": (*queues, queue("requests", stats=stats(publish=requests, deliver=requests, ack=requests))),
        "channels": (
            channel(mine, consumer_count=0, stats=stats(publish=requests)),
            channel(theirs, stats=stats(publish=requests, deliver=requests, ack=requests)),
        ),
        "consumers": (consumer("requests", channel_name=theirs, connection_name=SERVER),),
        "connections": (connection(REQUESTER, client_name="quotes"), connection(SERVER, client_name="pricing")),
    }


def shot(until, **fields):
    """The result for these queues."""
    return look(film(lambda t: leaking(t, **fields), until=until))


@pytest.mark.parametrize("fields", [{}, {"rate": 0.1}, {"rate": 3.0, "prefix": "r-x"}, {"exclusive": True}])
def test_queues_left_behind_that_become_more_are_one_finding(fields):
    """Whatever their names and rate are; a warning after a minute."""
    early, late = shot(40, **fields), shot(120, **fields)

    assert [("info", "/")] == of(RULE, early)
    assert [("warning", "/")] == of(RULE, late)
    assert not {"no-consumer", "queue-leak"} & {each.rule for each in late.findings}


def test_the_client_that_works_at_their_rate_is_named():
    """It publishes a request for each of them; the client that serves the requests consumes, too."""
    finding = one(RULE, shot(120))

    assert ("quotes", "rate", "answers.*") == tuple(finding.facts[key] for key in ("client", "client_by", "pattern"))
    assert "'quotes'" in text(finding).summary


def test_no_client_is_named_if_two_work_at_that_rate():
    """Rather none than the wrong one."""

    def two(t):
        frame = leaking(t)
        other = channel("x:1 -> y:2 (1)", consumer_count=0, stats=stats(publish=int(0.5 * t)))
        return {**frame, "channels": (*frame["channels"], other)}

    assert one(RULE, look(film(two, until=120))).facts["client"] is None


def test_a_hundred_queues_that_nobody_reads_are_one_finding():
    """Without growth it is information; what other rules say of each of them is beneath it."""
    result = look(film(lambda _: leaking(0, stock=100), until=700, every=50.0))

    assert [("info", "/")] == of(RULE, result)
    assert [RULE] == [each.rule for each in result.findings]
    assert 100 == sum(each.rule == "no-consumer" for each in flat(result.findings))


def test_two_polls_find_it():
    """As one look does: information, and what it becomes."""
    window = film(leaking, until=6, every=6.0)

    assert [("info", "/")] == of(RULE, look(window, thresholds=Thresholds.brief()))
    assert [("warning", "/")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


@pytest.mark.parametrize(
    "fields",
    [
        {"deleted": 2},
        {"arguments": {"x-expires": 60_000}},
        {"arguments": {"x-dead-letter-exchange": "dlx"}},
        {"stats": stats(publish=500)},
        {"stock": 5, "rate": 0.1},
        {"prefix": "parking."},
        {"prefix": "mqtt-subscription-meter"},
        {"type": "stream"},
    ],
    ids=["deleted", "expire", "dead letters", "in use", "few", "set aside", "sessions of MQTT", "streams"],
)
def test_what_only_resembles_it_is_no_growth(fields):
    """Each differs in one thing."""
    assert "warning" not in {severity for severity, _ in of(RULE, shot(120, **fields))}


def test_a_deployment_that_declares_its_queues_at_once_is_none():
    """Then their number stays."""
    frame = {"messages_ready": 0, "exclusive": True, "stats": stats()}
    result = look(film(lambda t: leaking(t, stock=0 if t < 20 else 60, rate=0.0, **frame), until=120))

    assert [] == of(RULE, result)


def test_exclusive_queues_of_many_clients_are_none():
    """One for each connection."""

    def fleet(t):
        frame = leaking(t, exclusive=True, messages_ready=0)
        more = tuple(connection(f"10.0.1.{n}:1 -> 10.0.0.1:5672") for n in range(len(frame["queues"])))
        return {**frame, "connections": more}

    assert [] == of(RULE, look(film(fleet, until=120)))


def consumed(t, *, times=1, rate=0.5):
    """One connection consumes from ever more queues that each got so many messages."""
    numbers = range(40 + int(rate * t))
    own = {"consumers": 1, "messages_ready": 0, "exclusive": True, "stats": stats(publish=times, deliver_no_ack=times)}
    return {
        "queues": tuple(left(number, **own) for number in numbers),
        "consumers": tuple(
            consumer(f"answers.{n:05d}", tag=f"c{n}", channel_name=f"{REQUESTER} (1)", connection_name=REQUESTER)
            for n in numbers
        ),
        "connections": (connection(REQUESTER, client_name="quotes"),),
    }


def test_reply_queues_whose_consumers_stay_are_those_of_their_connection():
    """The client is certain then."""
    result = look(film(consumed, until=120))
    finding = one(RULE, result)

    assert ("warning", "connection", REQUESTER) == (finding.severity, finding.subject.kind, finding.subject.name)
    assert ("quotes", "consumer") == (finding.facts["client"], finding.facts["client_by"])


def test_sessions_of_a_gateway_are_used_again():
    """A queue for each user, to which something is pushed now and then."""
    assert [] == of(RULE, look(film(lambda t: consumed(t, times=7), until=120)))
