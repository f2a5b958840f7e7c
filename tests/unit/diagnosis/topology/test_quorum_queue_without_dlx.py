import pytest

from tests.unit.diagnosis.pictures import film, look, queue, told


def limited(*, version="4.3.6", **fields):
    """A quorum queue with a consumer."""
    return lambda _t: {"queues": (queue(**{"type": "quorum", **fields}),), "version": version}


def bare(frame):
    """What this rule found."""
    return [each for each in look(film(frame, until=10)).findings if each.rule == "quorum-queue-without-dlx"]


def test_quorum_queues_without_a_place_for_what_fails_are_one_finding():
    """20 returns, from 4.0 on."""
    (finding,) = bare(limited())

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert "more than 20 times" in finding.summary
    assert "'orders'" in told(finding)


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"delivery_limit": 5}, "5"),
        ({"arguments": {"x-delivery-limit": 7}, "version": "3.10.8"}, "7"),
        ({"effective_policy": {"delivery-limit": 9}, "version": "3.10.8"}, "9"),
    ],
)
def test_the_limit_in_force_is_told(fields, limit):
    """By argument, policy, or as the broker says."""
    (finding,) = bare(limited(**fields))

    assert f"more than {limit} times" in finding.summary


@pytest.mark.parametrize(
    "frame",
    [
        limited(version="3.10.8"),
        limited(effective_policy={"dead-letter-exchange": "dead"}),
        limited(arguments={"x-dead-letter-exchange": ""}),
        limited(delivery_limit=-1),
        limited(consumers=0),
        limited(type="classic"),
        limited(name="orders.dlq"),
    ],
    ids=["no limit before 4.0", "policy", "argument", "no limit", "no consumer", "classic", "a dead-letter queue"],
)
def test_the_rest_is_quiet(frame):
    """Nothing is deleted there."""
    assert [] == bare(frame)
