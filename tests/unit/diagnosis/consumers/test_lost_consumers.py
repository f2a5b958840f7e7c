import pytest

from ackscope.findings import flat
from ackscope.topology import Link
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

RULE = "no-consumer"
PRINTER, OTHER = "10.0.0.8:41000 -> 10.0.0.1:5672", "10.0.0.9:42000 -> 10.0.0.1:5672"


def waiting(name, t, rate, *, since=0.0, before=0, consumers=0):
    """A queue that gets messages, and that nobody takes from since a second; `before` were taken until then."""
    ready = 0 if consumers else int(rate * max(0.0, t - since))
    taken = before + int(rate * max(0.0, min(t, since)))
    counters = stats(publish=taken + ready, deliver=taken, deliver_get=taken, ack=taken)
    return queue(name, consumers=consumers, messages_ready=ready, stats=counters)


def client(name, at, *, served=(), taken=150, active=None):
    """A client with one channel that consumes from some queues: its connection, channel and consumers."""
    mine = f"{at} (1)"
    idle = None if active is None else WALL + active
    there = channel(mine, consumer_count=len(served), idle_since=idle, stats=stats(deliver=taken, ack=taken))
    consumers = tuple(consumer(each, channel_name=mine, connection_name=at) for each in served)
    return connection(at, client_name=name, connected_at=WALL - 500), there, consumers


def scene(queues, *clients, **more):
    """One moment of some queues and clients."""
    connections, channels, lists = zip(*clients, strict=True) if clients else ((), (), ())
    return {
        "queues": tuple(queues),
        "connections": tuple(connections),
        "channels": tuple(channels),
        "consumers": tuple(each for consumers in lists for each in consumers),
        **more,
    }


def deleted(t, *, innocent="legacy", own="labels", rate=2.0, pace=3.5, at=50.0, back=60.0, since=-100.0, listed=True):
    """One queue is deleted and declared again, and its client stays; another one had no consumer long before."""
    here = t < at
    queues = [waiting(innocent, t, rate, since=since, before=200)]
    if here:
        queues.append(waiting(own, t, pace, since=t, before=150, consumers=1))
    elif t >= back:
        ready = int(pace * (t - back))
        queues.append(queue(own, consumers=0, messages_ready=ready, stats=stats(publish=ready)))
    served = (own,) if here and listed else ()
    mine = client("printer", PRINTER, served=served, taken=150 + int(pace * min(t, at)), active=None if here else at)
    return scene(queues, mine)


def of(verdict, name):
    """The finding about a queue without a consumer."""
    return next((each for each in flat(verdict.findings) if each.rule == RULE and each.subject.name == name), None)


@pytest.mark.parametrize("until", [75, 120, 200, 500])
@pytest.mark.parametrize(
    "fields",
    [{}, {"innocent": "a", "own": "b", "rate": 60.0, "pace": 0.9}, {"at": 30.0, "back": 30.0}, {"since": 20.0}],
)
def test_a_client_of_a_queue_that_was_deleted_is_no_candidate_for_another(fields, until):
    """It consumed from the deleted one only, which the lists of consumers showed; this is known for as long."""
    verdict = look(film(lambda t: deleted(t, **fields), until=until))
    innocent = of(verdict, fields.get("innocent", "legacy"))

    assert [] == innocent.facts["cancelled"]
    assert "printer" not in text(innocent).cause
    assert "printer" not in str(text(innocent).steps)


@pytest.mark.parametrize(("own", "pace"), [("labels", 3.5), ("q", 0.9), ("mail.out", 80.0)])
def test_a_queue_that_was_deleted_under_its_consumer_is_a_warning_at_once(own, pace):
    """No deployment leaves the channel open, and a client that ignores the broker's cancel waits for ever."""
    verdict = look(film(lambda t: deleted(t, own=own, pace=pace), until=85))
    finding = of(verdict, own)

    assert ("warning", ["printer"], True, True) == (
        finding.severity, finding.facts["cancelled"], finding.facts["cancelled_seen"],
        finding.facts["cancelled_by_broker"],
    )  # fmt: skip
    assert "was deleted and declared again" in text(finding).cause
    assert "deployment looks" not in text(finding).summary
    assert "if it consumes" not in text(finding).steps[0].text


def test_a_client_that_cancels_by_itself_may_pause():
    """It looks the same as one that consumes again soon, and not as a deployment."""

    def frame(t):
        pauses = t >= 30
        mine = client("worker", PRINTER, served=() if pauses else ("jobs",), active=30.0 if pauses else None)
        return scene([waiting("jobs", t, 5.0, since=30.0 if pauses else t, consumers=int(not pauses))], mine)

    early, late = (of(look(film(frame, until=until)), "jobs") for until in (55, 90))

    assert ("info", "warning") == (early.severity, late.severity)
    assert "A client that pauses and consumes again looks the same for up to 45 s" in text(early).summary
    assert late.facts["cancelled_seen"]
    assert not late.facts["cancelled_by_broker"]


def test_a_deployment_beside_a_consumer_that_was_cancelled_long_before_is_one():
    """One of two consumers was cancelled a minute before the other one ended with its connection."""

    def frame(t):
        first = client("parked", PRINTER, served=("jobs",) if t < 20 else (), active=None if t < 20 else 20.0)
        second = client("worker", OTHER, served=("jobs",))
        up = t < 90
        there = waiting("jobs", t, 5.0, since=t if up else 90.0, consumers=int(t < 20) + int(up))
        return scene([there], *((first, second) if up else (first,)))

    finding = of(look(film(frame, until=160)), "jobs")

    assert ("info", [], ["worker"]) == (
        finding.severity, finding.facts["cancelled"], finding.facts["gone_consumers"]
    )  # fmt: skip
    assert "'worker' consumed from it last" in text(finding).cause


@pytest.mark.parametrize("version", [{}, {"innocent": "x", "own": "y", "rate": 30.0, "pace": 0.7}])
def test_one_look_names_the_only_queue_that_the_times_allow(version):
    """The channel was active when the other queue had long been without a consumer, and until this one began."""

    def frame(t):
        return deleted(t, since=-100.0, **version)

    verdict = look(film(frame, start=190, until=220), thresholds=Thresholds.brief())
    innocent, own = (of(verdict, version.get(key, name)) for key, name in (("innocent", "legacy"), ("own", "labels")))

    assert [] == innocent.facts["cancelled"] or innocent is None
    assert ("warning", ["printer"]) == (own.severity, own.facts["cancelled"])
    assert "if it consumes from this queue" in text(own).steps[0].text


def test_one_look_names_nobody_where_two_queues_remain():
    """Both began when the channel ended its work."""

    def frame(t):
        queues = [
            queue(each, consumers=0, messages_ready=int(2 * (t - 60)), stats=stats(publish=int(2 * (t - 60))))
            for each in ("east", "west")
        ]
        return scene(queues, client("reader", PRINTER, active=55.0))

    verdict = look(film(frame, start=190, until=205), thresholds=Thresholds.brief())

    assert [[], []] == [of(verdict, each).facts["cancelled"] for each in ("east", "west")]


def shovelled(t, *, name="drain", of_queue="legacy", at=40.0, listed=True, stays=False, later=None):
    """A shovel that empties a queue and is gone from a second on; a client may consume after it."""
    runs = t < at
    used = runs or (later is not None and t < later)
    its = client(f"Shovel {name}", PRINTER, served=(of_queue,)) if runs else None
    other = client("reader", OTHER, served=(of_queue,)) if used and not runs else None
    state = "running" if runs else "starting"
    link = Link(kind="shovel", name=name, vhost="/", state=state, type="dynamic", source_queue=of_queue)
    since = t if used else later or at
    return scene(
        [waiting(of_queue, t, 2.0, since=since, before=50, consumers=int(used))],
        *(each for each in (its, other) if each is not None),
        links=(link,) if (listed and runs) or stays else (),
    )


@pytest.mark.parametrize("fields", [{}, {"name": "m", "of_queue": "in.old"}, {"listed": False}])
def test_a_shovel_that_is_gone_is_named(fields):
    """Nobody takes what comes after it, so this waits for no deployment."""
    finding = of(look(film(lambda t: shovelled(t, **fields), until=70)), fields.get("of_queue", "legacy"))

    assert ("warning", [fields.get("name", "drain")]) == (finding.severity, finding.facts["gone_shovels"])
    assert f"Its shovel '{fields.get('name', 'drain')}' is gone" in text(finding).cause
    assert not any("purge" in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize("fields", [{"stays": True}, {"later": 100.0}], ids=["it restarts", "another came after it"])
def test_other_shovels_are_not_named(fields):
    """Each differs in one thing only."""
    finding = of(look(film(lambda t: shovelled(t, **fields), until=140)), "legacy")

    assert [] == finding.facts["gone_shovels"]


def test_former_consumers_are_bounded_and_forgotten():
    """Thousands of private queues come and go; those whose channel and queue are gone are not asked for."""

    def frame(t):
        name = f"reply.{int(t)}"
        return scene([queue(name)], client("caller", f"10.0.0.7:{int(t) + 1000} -> 10.0.0.1:5672", served=(name,)))

    assert () == film(frame, until=100).former
