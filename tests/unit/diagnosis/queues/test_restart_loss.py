import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, queue, stats
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "restart-loss"
AT = 40.0
"""The second at which the node is started again."""


def restarted(t, *, had=300, left=100, persistent=100, acked=0.0, uptime=True, name="orders", **fields):
    """A queue with messages whose node is restarted at second 40."""
    over = t >= AT
    gone = int(acked * min(t, AT))
    ready = left if over else had - gone
    counters = stats() if over else stats(publish=had, deliver=gone, ack=gone)
    queues = (queue(name, messages_ready=ready, stats=counters, messages_persistent=persistent, **fields),)
    node = Node(name=NODE, running=True, uptime_seconds=(t - AT) if over and uptime else 1000.0 + t)
    return {
        # A node that has just started lists no queues yet.
        **frame(*(() if over and t < AT + 5 else queues)),
        "nodes": (node,),
    }


def shot(until=80, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: restarted(t, **fields), until=until))


def test_transient_messages_that_a_restart_took_are_counted():
    """200 of 300 were transient."""
    result = shot(name="a.b1")

    assert [("warning", "a.b1")] == of(RULE, result)
    facts = one(RULE, result).facts
    assert (200, 0, 300, 100, 200, True) == tuple(
        facts[key] for key in ("lost", "error", "before", "after", "transient", "all_transient")
    )


def test_where_the_broker_does_not_count_them_it_is_likely():
    """Other versions and types do not report persistent messages."""
    finding = one(RULE, shot(persistent=None))

    assert ("likely", None) == (finding.certainty.value, finding.facts["transient"])


@pytest.mark.parametrize(
    "fields",
    [
        {"left": 300},
        {"left": 296},
        {"uptime": False, "left": 300},
        {"durable": False},
        {"exclusive": True},
        {"acked": 5.0, "left": 80},
        {"until": 45},
    ],
    ids=["all recovered", "four", "no restart", "transient queue", "private", "consumers took them", "too early"],
)
def test_what_only_resembles_it_is_no_finding(fields):
    """Each differs in one thing."""
    assert [] == of(RULE, shot(**fields))


def busy(t, *, comes=20.0, acked=0.0, rejected=0.0, late=5.0, **fields):
    """A queue with constant traffic whose node is restarted at second 40: nothing is lost by that.

    The length is refreshed `late` seconds after the counters.
    """

    def counters(seconds):
        settled = int((acked + rejected) * seconds)
        return stats(publish=int(comes * seconds), deliver=settled, ack=int(acked * seconds))

    def length(seconds):
        return int((comes - acked - rejected) * max(0.0, seconds))

    over = t >= AT
    now = counters(t - AT) if over else counters(t)
    ready = length(t - late)
    node = Node(name=NODE, running=True, uptime_seconds=t - AT if over else 1000.0 + t)
    listed = () if over and t < AT + 5 else (queue("a.b1", messages_ready=ready, stats=now, **fields),)
    return {**frame(*listed), "nodes": (node,)}


@pytest.mark.parametrize("late", [0.0, 5.0])
@pytest.mark.parametrize(
    "traffic",
    [{}, {"acked": 20.0}, {"acked": 10.0}, {"rejected": 20.0}, {"rejected": 10.0}, {"acked": 5.0, "rejected": 5.0}],
    ids=["waits", "acked", "half acked", "rejected", "half rejected", "both"],
)
@pytest.mark.parametrize("comes", [20.0, 400.0])
def test_a_restart_is_not_blamed_for_traffic(traffic, comes, late):
    """Whatever clients settle or reject around it, and however old the length is."""
    flow = {name: rate * comes / 20 for name, rate in traffic.items()}

    for until in (55, 65, 80, 120):
        result = look(film(lambda t: busy(t, comes=comes, late=late, **flow), until=until))
        assert [] == of(RULE, result)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [({"x-message-ttl": 5000}, "may_have_expired"), ({"x-max-length": 300}, "may_be_dropped")],
)
def test_where_messages_may_have_left_in_another_way_it_is_inconclusive(arguments, reason):
    """They may have expired, or were dropped at a limit, while nobody looked."""
    result = shot(arguments=arguments)

    assert [] == of(RULE, result)
    assert [(reason, 200)] == [
        (each.reason, each.facts["missing"]) for each in result.inconclusive if each.rule == RULE
    ]


@pytest.mark.parametrize("arguments", [{"x-max-length": 1000}, {"x-max-length": 300, "x-overflow": "reject-publish"}])
def test_a_length_limit_that_drops_nothing_does_not_matter(arguments):
    """It is far away, or refuses publishes."""
    assert [("warning", "orders")] == of(RULE, shot(arguments=arguments))


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({}, "warning"),
        ({"acked": 2.0, "had": 400}, "critical"),
        ({"acked": 0.5, "name": "q-1"}, "critical"),
        ({"persistent": 300}, "critical"),
    ],
    ids=["nobody acknowledges", "work", "other names", "persistent"],
)
def test_work_and_persistent_messages_that_are_lost_are_critical(fields, severity):
    """Who acknowledges each message needs it. Transient ones that nobody acknowledges may be dispensable."""
    assert [severity] == [each for each, _ in of(RULE, shot(**fields))]


@pytest.mark.parametrize("back", [4.0, 9.0, 14.0])
@pytest.mark.parametrize("late", [5.0, 9.0])
@pytest.mark.parametrize("comes", [8.0, 20.0, 400.0])
def test_what_comes_just_before_the_first_length_is_no_loss(comes, late, back):
    """The publisher comes back some seconds after the start, and a busy node reports the length later than that."""

    def published(t):
        return comes * min(t, AT - 3) + comes * max(0.0, t - AT - back)

    def waits(t):
        over = t >= AT
        counters = stats(publish=int(comes * max(0.0, t - AT - back)) if over else int(comes * t))
        node = Node(name=NODE, running=True, uptime_seconds=t - AT if over else 1000.0 + t)
        ready = int(published(max(AT, t - late) if over else t))
        shown = queue("a.b1", messages_ready=ready, stats=counters, type="quorum")
        return {**frame(*(() if over and t < AT + 5 else (shown,))), "nodes": (node,)}

    for until in range(45, 120, 5):
        assert [] == of(RULE, look(film(waits, until=until)))
