import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats


def automatic(*, of=None, on=None, queues=1, sent=10):
    """Consumers with automatic acknowledgement."""

    def frame(t):
        counters = stats(publish=int(sent * t), deliver_no_ack=int(sent * t))
        names = [f"orders{number}" for number in range(queues)]
        return {
            "queues": tuple(queue(name, stats=counters, **(of or {})) for name in names),
            "consumers": tuple(
                consumer(name, **{"tag": name, "ack_required": False, "prefetch_count": 0, **(on or {})})
                for name in names
            ),
            "channels": (channel(),),
            "connections": (connection(),),
        }

    return frame


def test_they_are_listed_once_a_virtual_host():
    """It is a fact about applications, so it is information."""
    finding = only(look(film(automatic(queues=5), until=15)))

    assert ("auto-ack-consumer", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert [f"orders{number}" for number in range(5)] == finding.facts["queues"]
    assert {"tag": "orders0", "queue": "orders0"} == finding.facts["consumers"][0]
    assert (["billing"], 150) == (finding.facts["clients"], finding.facts["delivered"] // 5)
    assert 5 == len(finding.involved.queues)


@pytest.mark.parametrize(
    "frame",
    [
        automatic(of={"exclusive": True}),
        automatic(of={"auto_delete": True}),
        automatic(of={"durable": False}),
        automatic(on={"ack_required": True, "prefetch_count": 10}),
        automatic(on={"ack_required": None, "prefetch_count": 10}),
        automatic(sent=0),
    ],
    ids=["exclusive", "auto-delete", "transient", "manual", "not reported", "nothing delivered"],
)
def test_what_is_no_risk(frame):
    """Such a queue is deleted with its client anyway, or nothing is known."""
    assert [] == found(look(film(frame, until=30)))
