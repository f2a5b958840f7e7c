import pytest

from tests.unit.diagnosis.pictures import film, look, queue


def limited(*, version="4.3.6", **fields):
    """A quorum queue with a consumer."""
    return lambda _t: {"queues": (queue(**{"type": "quorum", **fields}),), "version": version}


def bare(frame):
    """Findings of this rule."""
    return [each for each in look(film(frame, until=10)).findings if each.rule == "quorum-queue-without-dlx"]


def test_quorum_queues_without_a_dead_letter_exchange_are_one_finding():
    """The limit is 20 from 4.0 on."""
    (finding,) = bare(limited())

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert ([20], ["orders"]) == (finding.facts["limits"], finding.facts["queue_names"])


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"delivery_limit": 5}, 5),
        ({"arguments": {"x-delivery-limit": 7}, "version": "3.10.8"}, 7),
        ({"effective_policy": {"delivery-limit": 9}, "version": "3.10.8"}, 9),
    ],
)
def test_the_limit_in_force_is_reported(fields, limit):
    """By argument, policy, or as the broker reports it."""
    (finding,) = bare(limited(**fields))

    assert [limit] == finding.facts["limits"]


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
def test_other_queues_are_not_reported(frame):
    """Nothing is deleted there."""
    assert [] == bare(frame)
