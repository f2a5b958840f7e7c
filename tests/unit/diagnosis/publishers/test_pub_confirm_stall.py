import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, WALL, channel, film, look, queue, stats, told
from tests.unit.diagnosis.publishers.films import CHANNEL, busy_queue, of, shop, whole

RULE = "pub-confirm-stall"
STALLED = 30.0


def stall(t, *, still=7, through=None, of_queue=None, nodes=None, confirms=0.0, idle=None, **fields):
    """All is confirmed until second 30; from then on something is open, and nothing more is confirmed."""
    late = t >= STALLED
    confirmed = int(1000 + 10 * min(t, STALLED) + confirms * max(0.0, t - STALLED))
    waits = channel(
        CHANNEL,
        confirm=True,
        consumer_count=0,
        messages_unconfirmed=still if late else 0,
        idle_since=WALL + STALLED if late and idle else None,
        stats=stats(publish=confirmed + (still if late else 0), confirm=confirmed),
        **fields,
    )
    picture = {
        "queues": (queue("orders", **(of_queue or {})), busy_queue(t, name="other")),
        "channels": (waits,),
        "connections": (shop(**(through or {})),),
    }
    return {**picture, "nodes": nodes} if nodes else picture


@pytest.mark.parametrize(("seconds", "severity"), [(12, None), (15, "warning"), (25, "critical"), (120, "critical")])
def test_confirms_that_do_not_come_are_told_and_soon_critical(seconds, severity):
    """A confirm that takes 15 s is no matter of load."""
    verdict = look(film(stall, until=STALLED + seconds - seconds % 5))

    assert ([(severity, "vhost", "/")] if severity else []) == of(verdict, RULE)


def test_the_queue_that_cannot_confirm_is_named():
    """A channel does not say where it publishes to; its virtual host has one that is ill."""
    ill = {"type": "quorum", "state": "minority", "members": ("a", "b", "c"), "online": ("a",), "leader": "a"}
    verdict = look(film(lambda t: stall(t, of_queue=ill), until=60))
    text = told(whole(verdict, RULE)[0])

    assert "'shop' in vhost '/' waits for confirms: 7 messages open" in text
    assert "'orders' (minority)" in text
    assert "1 of 3 members online" in text


def test_a_node_that_is_down_is_told_first():
    """Then the first step is to start it."""
    nodes = (Node(name=NODE, running=True), Node(name="rabbit@two", running=False))
    finding = whole(look(film(lambda t: stall(t, nodes=nodes), until=60)), RULE)[0]

    assert "rabbit@two" in finding.cause
    assert "start the node again: rabbit@two" in finding.next_steps[0]


def test_the_broker_says_since_when_a_channel_is_idle():
    """Readings go back half a minute, idle_since further."""
    verdict = look(film(lambda t: stall(t, idle=True), until=STALLED + 300))

    assert "none confirmed for 5 min" in whole(verdict, RULE)[0].summary


@pytest.mark.parametrize(
    "change",
    [
        {"confirms": 10.0},
        {"confirms": 0.3},
        {"through": {"state": "blocked"}},
        {"still": 0},
        {"confirm_mode": False},
    ],
    ids=["one open at a time", "slow", "alarm", "nothing open", "no confirms"],
)
def test_what_only_looks_like_it(change):
    """Confirms that come, however slowly; an alarm; nothing to wait for."""

    def frame(t):
        fields = {key: value for key, value in change.items() if key != "confirm_mode"}
        picture = stall(t, **fields)
        if "confirm_mode" not in change:
            return picture
        return {**picture, "channels": (channel(CHANNEL, confirm=False, messages_unconfirmed=None),)}

    assert [] == of(look(film(frame, until=120)), RULE)


def test_many_publishers_are_one_finding():
    """The cause is one, in the broker."""

    def frame(t):
        many = [stall(t)["channels"][0] for _ in range(3)]
        named = tuple(
            type(each)(**{**_fields(each), "name": f"{CHANNEL[:-3]}({number})"}) for number, each in enumerate(many)
        )
        return {**stall(t), "channels": named}

    verdict = look(film(frame, until=60))

    assert [("critical", "vhost", "/")] == of(verdict, RULE)
    assert "21 messages open" in whole(verdict, RULE)[0].summary


def _fields(each):
    return {name: getattr(each, name) for name in each.__dataclass_fields__}
