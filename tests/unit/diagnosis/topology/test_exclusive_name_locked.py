from diagnosis.churn_loops import text_bytes
from diagnosis.rules.topology.exclusive_name_locked import error_texts
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import film, found, look, only, queue, text

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
