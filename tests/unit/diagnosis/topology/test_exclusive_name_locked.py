import pytest

from diagnosis.churn_loops import text_bytes
from diagnosis.rules.topology.exclusive_name_locked import error_texts
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import connection, consumer, film, found, look, only, queue, stats, text

NAME = "fault.exclusive-name-locked"


def locked(t, *, name=NAME, exclusive=True, vhost="/"):
    """A queue that another connection owns: 278 bytes a cycle, as seen on 3.10.8 and 4.3.6."""
    mine = queue(name, exclusive=exclusive, durable=False, vhost=vhost)
    return {**looping(t, sent=278, received=72, declares=1), "queues": (mine,)}


def test_the_text_is_as_long_as_that_of_the_broker():
    """243 bytes for this name, seen on 3.10.8 and 4.3.6."""
    assert 243 == text_bytes(error_texts(NAME, "/")[1])


def test_the_queue_and_the_refused_client_are_named():
    """With how to find the owner of the queue."""
    finding = only(look(film(locked, until=30)))

    assert ("exclusive-name-locked", "info", NAME) == (finding.rule, finding.severity, finding.subject.name)
    assert ("billing", "10.0.0.7:50001", "guest") == tuple(finding.facts[key] for key in ("client", "peer", "user"))
    assert ["channel-churn"] == [each.rule for each in finding.consequences]
    assert (text(finding).steps[0].command or "").endswith("owner_pid | grep -F -- fault.exclusive-name-locked")


def test_it_is_a_warning_after_three_minutes():
    """By then a dead owner has missed its heartbeats."""
    assert [("exclusive-name-locked", "warning", NAME)] == found(look(film(locked, until=200)))


def test_a_queue_that_it_cannot_be_is_not_named():
    """Another length, another virtual host, or not exclusive: then it is another error."""
    for frame in (
        lambda t: locked(t, name="other"),
        lambda t: locked(t, vhost="shop"),
        lambda t: locked(t, exclusive=False),
    ):
        assert "exclusive-name-locked" not in {rule for rule, _, _ in found(look(film(frame, until=40)))}


OLD = "10.0.0.7:50000 -> b"


def owned(t, *, ready=40, consumers=0, gone=False, polls=0.0, named=True, since=0.0, drained=False, **fields):
    """The locked queue belongs to the previous connection of the same application, which stays connected."""
    made = locked(t)
    waiting = ready if t >= since and not drained else 0
    counters = stats(publish=900 + int(3 * t), deliver=900, ack=900, get_empty=int(polls * t))
    mine = queue(
        NAME,
        exclusive=True,
        durable=False,
        messages_ready=waiting,
        consumers=consumers,
        stats=counters,
        owner=OLD if named else None,
        **fields,
    )
    there = connection(OLD, client_name="billing", user="guest", peer_host="10.0.0.7", peer_port=50000)
    return {
        **made,
        "queues": (mine,),
        "connections": made["connections"] if gone else (*made["connections"], there),
        "consumers": (consumer(NAME, connection_name=OLD, channel_name=f"{OLD} (1)"),) if consumers else (),
    }


@pytest.mark.parametrize("ready", [1, 40, 5000])
def test_an_owner_that_does_not_consume_while_messages_wait_is_a_warning(ready):
    """A process that died would leave its consumer behind, so this is no restart."""
    finding = only(look(film(lambda t: owned(t, ready=ready), until=30)))
    said = text(finding)

    assert ("exclusive-name-locked", "warning", NAME) == (finding.rule, finding.severity, finding.subject.name)
    assert "Its owner, 'billing' at 10.0.0.7:50000, is connected and does not consume" in said.summary
    assert f"{ready:,} message" in said.summary
    assert "hangs" in said.cause
    assert "Restart 'billing' at 10.0.0.7:50000" in said.steps[0].text
    assert "10.0.0.7%3A50000%20-%3E%20b" in (said.steps[1].command or "")
    assert not any("list_connections pid" in (each.command or "") for each in said.steps)


@pytest.mark.parametrize(
    "fields",
    [{"consumers": 1}, {"drained": True}, {"since": 25.0}, {"polls": 1.0}],
    ids=["consumes", "nothing waits", "waits for 5 s", "polls"],
)
def test_an_owner_that_works_or_may_restart_is_information_and_named(fields):
    """After a crash, the broker keeps the old connection with its consumer until two heartbeats are missed."""
    finding = only(look(film(lambda t: owned(t, **fields), until=30)))

    assert ("info", False) == (finding.severity, finding.facts["owner_left"])
    assert "Its owner is 'billing' at 10.0.0.7:50000 (a restart" in text(finding).summary


@pytest.mark.parametrize(("gone", "who"), [(False, ", probably 'billing' at 10.0.0.7:50000,"), (True, "")])
def test_an_owner_that_the_api_does_not_name_is_connected_all_the_same(gone, who):
    """The queue would go with its connection. Who it is, its pid shows; it may be the other one of that client."""
    finding = only(look(film(lambda t: owned(t, gone=gone, named=False), until=30)))
    said = text(finding)

    assert "warning" == finding.severity
    assert f"Its owner{who} is connected and does not consume: 40 messages wait." in said.summary
    assert (said.steps[0].command or "").endswith("owner_pid | grep -F -- fault.exclusive-name-locked")


def test_of_two_queues_that_it_may_be_no_owner_is_accused():
    """Their names have the same length."""

    def frame(t):
        made = owned(t)
        twin = queue(NAME.replace("fault", "vault"), exclusive=True, durable=False, owner=OLD)
        return {**made, "queues": (*made["queues"], twin)}

    assert "warning" not in {severity for _, severity, _ in found(look(film(frame, until=30)))}
