"""Consumers of several queues that stop at the same moment: one finding, which says so."""

from dataclasses import dataclass

import pytest

from tests.unit.diagnosis.consumers.results import found, only, own
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text


@dataclass(frozen=True, kw_only=True)
class Service:
    """A client that reads `of` and works off `rate` messages a second until it stops.

    Attributes:
        works: how many a second it can work off, with `behind` messages ready from the begin.
        opened: second of the film at which it connected; None if the broker does not say.
    """

    of: str
    stops: float = 40.0
    client: str = ""
    rate: float = 4.0
    prefetch: int = 10
    behind: int = 0
    opened: float | None = -300.0
    active: bool = True


def services(*parts):
    """Return a film of these services; the broker renewed `idle_since` of all channels in the same second."""

    def frame(t):
        found = {"queues": [], "consumers": [], "channels": [], "connections": []}
        for number, each in enumerate(parts):
            peer = f"10.0.3.{number}:4{number} -> 10.0.0.1:5672"
            published, acked = int(200 + each.rate * t), int(200 - each.behind + each.rate * min(t, each.stops))
            left = published - acked
            holds = min(left, each.prefetch) if t > each.stops else 0
            mine = {"deliver": acked + holds, "deliver_get": acked + holds, "ack": acked}
            fields = {"messages": left, "messages_ready": left - holds, "messages_unacked": holds}
            found["queues"].append(queue(each.of, **fields, stats=stats(publish=published, **mine)))
            link = {"tag": f"c{number}", "channel_name": f"{peer} (1)", "connection_name": peer}
            found["consumers"].append(consumer(each.of, prefetch_count=each.prefetch, **link))
            idle = WALL + 61 if t > max(61.0, each.stops) else None
            found["channels"].append(
                channel(f"{peer} (1)", messages_unacked=holds, idle_since=idle, stats=stats(**mine))
            )
            opened = None if each.opened is None else WALL + each.opened
            name = each.client or f"{each.of}-svc"
            found["connections"].append(connection(peer, client_name=name, connected_at=opened))
        return {kind: tuple(listed) for kind, listed in found.items()}

    return frame


def outage(*names, **fields):
    """Return services that stop at the same moment, with different rates and prefetch counts."""
    return [
        Service(of=name, rate=2.0 + 3 * place, prefetch=5 + 7 * place, **fields) for place, name in enumerate(names)
    ]


@pytest.mark.parametrize("names", [("billing", "loyalty", "search"), ("z", "a"), ("x.1", "x.2", "y", "w")])
@pytest.mark.parametrize("until", [80, 150, 400])
def test_they_are_one_finding(names, until):
    """Others work on. It stays one when the readings of that moment are thinned."""
    mail = Service(of="mail", stops=10_000)
    finding = only(look(film(services(*outage(*names), mail), until=until)))

    assert ("stuck-consumer", "critical") == (finding.rule, finding.severity)
    assert {"stuck-consumer"} == {each.rule for each in finding.consequences if each.subject.name in names}
    together = finding.facts["together"]
    assert (sorted(names), sorted(f"{name}-svc" for name in names)) == (together["queues"], together["clients"])
    assert together["within_seconds"] <= 8
    assert f"{len(names)} clients that had worked until then" in text(finding).cause


def test_one_look_that_comes_later_tells_by_what_has_arrived_since():
    """Both readings are after the stop, and `idle_since` is that of another moment."""
    verdict = look(film(services(*outage("billing", "loyalty")), start=100, until=130, every=10))

    assert [("stuck-consumer", "critical")] == [each[:2] for each in found(verdict)]
    assert only(verdict).facts["together"] is not None


def test_queues_that_were_behind_stop_between_the_same_readings():
    """What arrived first is older than the stop."""
    parts = [Service(of=name, behind=150) for name in ("a", "b")]

    assert ["a", "b"] == only(look(film(services(*parts), until=80))).facts["together"]["queues"]


@pytest.mark.parametrize(
    "other",
    [
        Service(of="search", stops=70),
        Service(of="search", stops=10),
        Service(of="search", opened=35),
        Service(of="search", opened=None),
        Service(of="search", behind=150, stops=12),
    ],
    ids=["30 s later", "30 s earlier", "deployed then", "unknown age", "behind, and earlier"],
)
@pytest.mark.parametrize("until", [110, 300])
def test_others_are_findings_of_their_own(other, until):
    """They stopped at another moment, or had just started. `idle_since` is the same for all."""
    verdict = look(film(services(Service(of="billing"), other), until=until))

    assert ["stuck-consumer"] * 2 == [each.rule for each in own(verdict)]
    assert [None, None] == [each.facts["together"] for each in own(verdict)]


def test_one_client_that_stops_on_two_queues_is_no_common_stop():
    """The client itself is the cause."""
    parts = [Service(of=name, client="billing") for name in ("a", "b")]
    finding = only(look(film(services(*parts), until=90)))

    assert (None, ["stuck-consumer"]) == (finding.facts["together"], [each.rule for each in finding.consequences])
    assert "restart the client" in " ".join(text(finding).next_steps)


def test_a_restart_is_not_the_first_advice():
    """It would help none of them."""
    steps = text(only(look(film(services(*outage("a", "b", "c")), until=90)))).next_steps

    assert "in common" in steps[0]
    assert not any("Then restart" in each for each in steps)
