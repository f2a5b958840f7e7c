import pytest

from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "delay-queue-consumed"
ONE, TWO = "10.0.0.7:50001 -> 10.0.0.1:5672", "10.0.0.8:50002 -> 10.0.0.1:5672"
JOBS, WAIT = "invoices", "invoices.later"


def retried(
    *,
    ttl=15_000,
    by_policy=False,
    leads_back=True,
    behind=JOBS,
    work_ttl=None,
    both=(JOBS, WAIT),
    waits_for=ONE,
    name="invoicer",
    other="invoicer",
    taken=9,
):
    """A retry by a delay queue. `both`: the queues with consumers, `waits_for`: who consumes from the delay queue."""
    route = {"dead-letter-exchange": "", "dead-letter-routing-key": behind}
    settings = {**route, "message-ttl": ttl} if ttl is not None else route
    delay = (
        {"effective_policy": settings, "policy": "later"}
        if by_policy
        else {"arguments": {f"x-{key}": value for key, value in settings.items()}}
    )
    work = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": WAIT} if leads_back else {}
    if work_ttl is not None:
        work["x-message-ttl"] = work_ttl

    def frame(t):
        got = stats(publish=int(5 * t) + taken, deliver=int(5 * t) + taken, ack=int(5 * t) + taken)
        here = stats(publish=int(t) + taken, deliver=taken, ack=taken)
        places = {JOBS: ONE, WAIT: waits_for}
        consumers = [
            consumer(each, tag=each, connection_name=places[each], channel_name=f"{places[each]} (1)") for each in both
        ]
        return {
            "queues": (
                queue(JOBS, arguments=work, stats=got, consumers=int(JOBS in both)),
                queue(WAIT, stats=here, consumers=int(WAIT in both), messages_ready=3, **delay),
            ),
            "consumers": tuple(consumers),
            "channels": (channel(f"{ONE} (1)"), channel(f"{TWO} (1)")),
            "connections": (connection(ONE, client_name=name), connection(TWO, client_name=other)),
        }

    return frame


@pytest.mark.parametrize("until", [5, 60], ids=["one look", "a minute"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ttl": 600_000},
        {"by_policy": True},
        {"waits_for": TWO},
        {"work_ttl": 86_400_000},
        {"work_ttl": 10_000},
        {"taken": 4000},
    ],
    ids=[
        "one connection",
        "ten minutes",
        "by policy",
        "two connections",
        "work expires later",
        "work expires sooner",
        "many",
    ],
)
def test_a_client_that_consumes_from_its_delay_queue_is_a_warning_at_once(options, until):
    """Settings and subscriptions show it; no counter has to move."""
    finding = one(RULE, look(film(retried(**options), until=until)))

    assert ("warning", WAIT) == (finding.severity.value, finding.subject.name)
    assert [JOBS, ["invoicer"]] == [finding.facts["target"], finding.facts["clients"]]
    assert "does not work" in full_text(finding)


@pytest.mark.parametrize(
    "options",
    [
        {"both": (JOBS,)},
        {"leads_back": False},
        {"other": "dead-letter-viewer", "waits_for": TWO},
        {"ttl": None},
        {"behind": WAIT},
        {"behind": "gone"},
        {"both": (WAIT,)},
    ],
    ids=[
        "a delay queue that works",
        "a deadline, and its client handles what came too late",
        "another application reads them",
        "no TTL",
        "leads to itself",
        "leads nowhere",
        "nobody consumes from the work queue",
    ],
)
def test_what_looks_like_it_is_not_reported(options):
    """Without proof that the queue should delay, its consumer is one as any other."""
    assert [] == of(RULE, look(film(retried(**options), until=60)))


@pytest.mark.parametrize("options", [{"taken": 0}, {"ttl": 7 * 86_400_000}], ids=["nothing taken", "a week"])
def test_it_is_information_if_nothing_came_early(options):
    """A TTL of a week limits for how long dead letters are kept."""
    assert [("info", WAIT)] == of(RULE, look(film(retried(**options), until=60)))


def test_copies_that_circulate_through_it_are_its_consequence():
    """The work queue does not dead-letter to it: its client publishes the copies."""
    calm = retried(leads_back=False)
    shop = "10.0.0.9:51000 -> 10.0.0.1:5672"

    def frame(t):
        parts, round_ = calm(t), int(30 * t)
        jobs, wait = parts["queues"]
        mine = stats(publish=round_, deliver=round_ + int(2 * t), ack=round_ + int(2 * t))
        jobs = queue(JOBS, stats=stats(publish=int(2 * t) + 50, deliver=int(2 * t) + 50, ack=int(2 * t) + 50))
        wait = queue(
            WAIT,
            arguments=wait.arguments,
            messages_ready=6,
            messages_unacked=2,
            stats=stats(publish=round_ + 8, deliver=round_ + 2, ack=round_),
        )
        feeding = channel(f"{shop} (1)", consumer_count=0, stats=stats(publish=int(2 * t) + 50))
        return {
            **parts,
            "queues": (jobs, wait),
            "channels": (channel(f"{ONE} (1)", messages_unacked=2, stats=mine), feeding),
            "connections": (connection(ONE, client_name="invoicer"), connection(shop, client_name="shop")),
        }

    finding = one(RULE, look(film(frame, until=70)))

    assert ("warning", WAIT) == (finding.severity.value, finding.subject.name)
    assert ["republish-loop"] == [each.rule for each in finding.consequences]
    assert "circulate" in full_text(finding)
