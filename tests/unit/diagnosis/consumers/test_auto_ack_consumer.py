import pytest

from tests.unit.diagnosis.consumers.own import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, told


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
    """A fact about applications, told as information."""
    finding = only(look(film(automatic(queues=5), until=15)))

    assert ("auto-ack-consumer", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert "5 consumers in vhost '/'" in finding.summary
    assert "'orders0', 'orders1', 'orders2' and 2 more" in told(finding)


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
    ids=["private", "goes with its client", "transient", "manual", "not told", "nothing sent"],
)
def test_what_is_no_risk(frame):
    """What such a queue holds goes with the client anyway, or nothing is known."""
    assert [] == found(look(film(frame, until=30)))
