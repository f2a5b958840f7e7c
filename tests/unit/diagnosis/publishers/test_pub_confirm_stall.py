import pytest

from ackscope.findings import QueueRef
from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, WALL, channel, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import CHANNEL, busy_queue, facts, findings, of, shop

RULE = "pub-confirm-stall"
STALLED = 30.0


def stall(t, *, unconfirmed=7, through=None, of_queue=None, nodes=None, confirms=0.0, idle=None, **fields):
    """All messages are confirmed until second 30; after that some are unconfirmed, and none is confirmed."""
    late = t >= STALLED
    confirmed = int(1000 + 10 * min(t, STALLED) + confirms * max(0.0, t - STALLED))
    waits = channel(
        CHANNEL,
        confirm=True,
        consumer_count=0,
        messages_unconfirmed=unconfirmed if late else 0,
        idle_since=WALL + STALLED if late and idle else None,
        stats=stats(publish=confirmed + (unconfirmed if late else 0), confirm=confirmed),
        **fields,
    )
    picture = {
        "queues": (queue("orders", **(of_queue or {})), busy_queue(t, name="other")),
        "channels": (waits,),
        "connections": (shop(**(through or {})),),
    }
    return {**picture, "nodes": nodes} if nodes else picture


@pytest.mark.parametrize(("seconds", "severity"), [(12, None), (15, "warning"), (25, "critical"), (120, "critical")])
def test_missing_confirms_are_a_warning_and_then_critical(seconds, severity):
    """Load alone does not delay a confirm by 15 s."""
    verdict = look(film(stall, until=STALLED + seconds - seconds % 5))

    assert ([(severity, "vhost", "/")] if severity else []) == of(verdict, RULE)


def test_the_queue_that_cannot_confirm_is_named():
    """A channel does not show where it publishes to; its virtual host has one queue in minority."""
    minority = {"type": "quorum", "state": "minority", "members": ("a", "b", "c"), "online": ("a",), "leader": "a"}
    verdict = look(film(lambda t: stall(t, of_queue=minority), until=60))
    finding = findings(verdict, RULE)[0]

    assert (["shop"], 7) == (finding.facts["clients"], finding.facts["unconfirmed"])
    assert [{"name": "orders", "state": "minority", "members": 3, "online": 1}] == finding.facts["unavailable_queues"]
    assert (QueueRef("/", "orders"),) == finding.involved.queues
    assert ["publisher", "queue"] == [item.key for item in finding.evidence]


def test_a_node_that_is_down_is_named():
    """Then the first step is to start it."""
    nodes = (Node(name=NODE, running=True), Node(name="rabbit@two", running=False))
    finding = findings(look(film(lambda t: stall(t, nodes=nodes), until=60)), RULE)[0]

    assert ["rabbit@two"] == finding.facts["nodes_down"]
    assert "rabbit@two" in text(finding).steps[0].text


def test_idle_since_shows_how_long_a_channel_has_waited():
    """Readings go back half a minute, idle_since further."""
    verdict = look(film(lambda t: stall(t, idle=True), until=STALLED + 300))

    assert 300 <= facts(verdict, RULE)["stalled_seconds"] < 306


@pytest.mark.parametrize(
    "change",
    [
        {"confirms": 10.0},
        {"confirms": 0.3},
        {"through": {"state": "blocked"}},
        {"unconfirmed": 0},
        {"confirm_mode": False},
    ],
    ids=["one at a time", "slow", "alarm", "nothing unconfirmed", "no confirms"],
)
def test_lookalikes_are_not_reported(change):
    """Confirms that arrive, however slowly; an alarm; nothing to wait for."""

    def frame(t):
        fields = {key: value for key, value in change.items() if key != "confirm_mode"}
        picture = stall(t, **fields)
        if "confirm_mode" not in change:
            return picture
        return {**picture, "channels": (channel(CHANNEL, confirm=False, messages_unconfirmed=None),)}

    assert [] == of(look(film(frame, until=120)), RULE)


def test_many_publishers_are_one_finding():
    """They have one common cause in the broker."""

    def frame(t):
        many = [stall(t)["channels"][0] for _ in range(3)]
        named = tuple(
            type(each)(**{**_fields(each), "name": f"{CHANNEL[:-3]}({number})"}) for number, each in enumerate(many)
        )
        return {**stall(t), "channels": named}

    verdict = look(film(frame, until=60))

    assert [("critical", "vhost", "/")] == of(verdict, RULE)
    assert 21 == facts(verdict, RULE)["unconfirmed"]


def _fields(each):
    return {name: getattr(each, name) for name in each.__dataclass_fields__}
