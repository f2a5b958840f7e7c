"""A queue drains a burst, and what others publish waits behind it."""

import pytest

from tests.unit.diagnosis.pictures import WALL, channel, connection, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "stale-head"
AT = 100.0


def shared(t, *, many=3000, usual=2.0, takes=20.0, lasts=10.0, name="jobs", later=None, start=0, **fields):
    """A queue that gets some messages all the time, and at second 100 many at once; consumers work at their pace.

    `later` is what comes a second after the burst; `start` is a backlog from before.
    """
    burst = int(many * min(1.0, max(0.0, t - AT) / lasts))
    calm = usual if later is None else later
    came = int(usual * min(t, AT) + calm * max(0.0, t - AT)) + burst + start
    # Before the burst everything is taken at once, but for a backlog from before.
    before = int(usual * min(t, AT)) if not start else int(takes * min(t, AT))
    taken = min(came, before + int(takes * max(0.0, t - AT)))
    counters = stats(publish=came, deliver=taken, deliver_get=taken, ack=taken)
    return queue(name, messages_ready=came - taken, consumers=2, stats=counters, **fields)


def tenants(t, *, many=3000, others=1, opened=WALL, lasts=10.0):
    """The publishers: one sent the burst, the others a few messages all the time."""
    sent = int(many * min(1.0, max(0.0, t - AT) / lasts))
    made = [("import", sent, opened)] + [(f"web{number}", int(2.0 * t / others), WALL) for number in range(others)]
    channels, connections = [], []
    for number, (name, published, since) in enumerate(made):
        peer = f"10.0.0.{number}:5000{number} -> b"
        channels.append(channel(f"{peer} (1)", consumer_count=0, confirm=True, stats=stats(publish=published)))
        connections.append(connection(peer, client_name=name, connected_at=since))
    return {"channels": tuple(channels), "connections": tuple(connections)}


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: frame(shared(t, **fields)), until=until))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(
    ("many", "usual", "takes", "name"), [(3000, 2.0, 20.0, "jobs"), (60_000, 50.0, 400.0, "夜"), (300, 0.5, 2.0, "q.1")]
)
def test_what_comes_after_a_burst_waits_behind_it(kind, many, usual, takes, name):
    """It is information after a minute, with the age and the wait; the queue drains all the time."""
    finding = one(RULE, shot(200, many=many, usual=usual, takes=takes, name=name, type=kind))
    burst = finding.facts["burst"]

    assert ("info", name, False) == (finding.severity, finding.subject.name, finding.facts["overtaken"])
    assert 60 <= finding.facts["age_seconds"] <= 100
    assert 0.95 * many <= burst["messages"] <= 1.1 * many + 10
    assert pytest.approx(takes, rel=0.1) == burst["consume_rate"]
    assert pytest.approx((many - 90 * (takes - usual)) / takes, rel=0.2) == burst["wait_seconds"]
    assert "came within" in text(finding).summary
    assert "never falls to 0" not in str(text(finding).next_steps)


def test_after_five_minutes_it_is_a_warning_that_names_the_burst():
    """The oldest message is that old by then."""
    finding = one(RULE, shot(480, many=12_000, takes=20.0))

    assert "warning" == finding.severity
    assert finding.facts["burst"] is not None


@pytest.mark.parametrize(
    ("fields", "until"),
    [
        ({}, 140),
        ({"many": 600}, 200),
        ({"later": 0.0}, 200),
        ({"later": 30.0}, 200),
        ({"many": 0}, 250),
        ({"lasts": 100.0, "many": 1500}, 230),
        ({"start": 9000}, 200),
        ({"arguments": {"x-max-priority": 5}}, 200),
        ({"type": "stream"}, 200),
    ],
    ids=["early", "worked off", "nobody waits", "grows", "no burst", "slow", "waited before", "priorities", "stream"],
)
def test_queues_in_which_nobody_waits_behind_a_burst(fields, until):
    """Each differs in one thing."""
    assert [] == [
        each for each in of(RULE, shot(until, **fields)) if "burst" in str(one(RULE, shot(until, **fields)).facts)
    ]


@pytest.mark.parametrize(("others", "named"), [(1, ["import"]), (5, ["import"])])
def test_the_publisher_of_the_burst_is_named(others, named):
    """It published more than its present rate explains, and no other one did."""

    def at(t):
        return {**frame(shared(t)), **tenants(t, others=others)}

    finding = one(RULE, look(film(at, until=200)))

    assert named == finding.facts["burst"]["sources"]
    assert "most of them from 'import'" in text(finding).summary


def test_of_two_that_may_have_sent_it_none_is_named():
    """Both sent as much at some time since they connected."""

    def at(t):
        made = tenants(t)
        old = channel("10.9.9.9:1 -> b (1)", consumer_count=0, confirm=True, stats=stats(publish=5000))
        return {
            **frame(shared(t)),
            "channels": (*made["channels"], old),
            "connections": (*made["connections"], connection("10.9.9.9:1 -> b", client_name="old", connected_at=WALL)),
        }

    finding = one(RULE, look(film(at, until=200)))

    assert [] == finding.facts["burst"]["sources"]
    assert "Ask the owners" in str(text(finding).next_steps)
