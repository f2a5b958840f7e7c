import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning, loop, looping, steady, turns
from tests.unit.diagnosis.pictures import PEER, film, found, look, only, queue, stats, text


def mismatched(t, *, text=153, declares=1, queues=(), **fields):
    """A queue declared with a TTL that it does not have, and the broker's text of this many bytes."""
    return {**looping(t, sent=35 + text, received=70, declares=declares, **fields), "queues": queues}


def test_a_declaration_that_is_refused_again_and_again_is_reported():
    """The channel churn is its consequence."""
    finding = only(look(film(mismatched, until=30)))

    assert ("declare-mismatch", "info", PEER) == (finding.rule, finding.severity, finding.subject.name)
    assert ["channel-churn"] == [each.rule for each in finding.consequences]
    assert ("billing", "early", 180.0) == (
        finding.facts["client"], finding.certainty, finding.facts["warning_after_seconds"],
    )  # fmt: skip
    assert "a warning after 3 min" in text(finding).summary


def test_it_is_a_warning_after_three_minutes():
    """A rolling deployment is over by then."""
    assert [("declare-mismatch", "warning", PEER)] == found(look(film(mismatched, until=200)))


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: mismatched(t, declares=0),
        lambda t: mismatched(t, text=63),
        lambda t: looping(t, sent=28, received=70, declares=1),
    ],
    ids=["nothing is declared", "another error", "no error"],
)
def test_other_loops_are_not_reported(frame):
    """Each is a loop of another kind."""
    assert "declare-mismatch" not in {rule for rule, _, _ in found(look(film(frame, until=40)))}


def test_a_locked_queue_is_another_finding():
    """The text is as long as that about an exclusive queue that exists: 215 bytes and the names of queue and vhost."""
    held = queue("fault.lock", exclusive=True, durable=False)
    verdict = look(film(lambda t: mismatched(t, text=215 + 10 + 1, queues=(held,)), until=40))

    assert [("exclusive-name-locked", "info", "fault.lock")] == found(verdict)


def test_two_polls_are_enough():
    """Six seconds apart."""
    window = film(mismatched, until=12, every=6, start=6)

    assert [("declare-mismatch", "warning", PEER)] == found(look(window, thresholds=Thresholds.as_if_lasting()))


OTHER = "10.0.0.8:50002 -> 10.0.0.1:5672"
TTL = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'tickets' in vhost '/': received "
ADDED = f"{TTL}the value '86400000' of type 'signedint' but current is none"
CHANGED = f"{TTL}none but current is the value '60000' of type 'signedint'"


def released(t, *, error=ADDED, declares=1.0, began=10.0, **fields):
    """A release of two instances, which declare a queue with another TTL; the old consumer is gone."""
    pods = {PEER: 0.5, OTHER: 0.4}
    done = {name: turns(t, rate, began) for name, rate in pods.items()}
    there, consuming = steady(t)
    loops = (
        loop(t, rate=rate, began=began, name=name, sent=35 + len(error), received=78, client_name=f"desk-{name[7]}")
        for name, rate in pods.items()
    )
    waiting = {"consumers": 0, "messages_ready": int(9 + 5 * t), "stats": stats(publish=int(99 + 5 * t), ack=90)}
    return {
        "overview": churning(
            t,
            channels=sum(done.values()),
            declares=int(declares * sum(done.values())),
            stats=stats(deliver_get=int(10 * t), ack=int(10 * t)),
        ),
        "connections": (there, *loops),
        "channels": (consuming,),
        "queues": (queue("tickets", **{**waiting, **fields}),),
    }


@pytest.mark.parametrize(
    "fields",
    [{}, {"error": CHANGED, "arguments": {"x-message-ttl": 60000}}],
    ids=["an argument more", "an argument less"],
)
def test_instances_that_are_refused_the_same_queue_are_one_finding(fields):
    """So is the queue that waits for them."""
    (finding,) = [
        each
        for each in look(film(lambda t: released(t, **fields), until=100)).findings
        if each.rule == "declare-mismatch"
    ]

    assert ("warning", "tickets", 60.0) == (
        finding.severity,
        finding.facts["waiting"],
        finding.facts["warning_after_seconds"],
    )
    assert ["channel-churn", "channel-churn", "declare-mismatch", "no-consumer"] == sorted(
        each.rule for each in finding.consequences
    )
    assert "declares queue 'tickets' and is refused" in text(finding).summary
    assert "Restarting the application changes nothing" in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [
        {"declares": 0.4},
        {"consumers": 1},
        {"error": "PRECONDITION_FAILED - unknown delivery tag 1" + 60 * "x"},
        {"vhost": "b"},
    ],
    ids=["too few declarations", "the queue is consumed", "another error", "a queue of another vhost"],
)
def test_of_several_loops_none_is_this_without_proof(fields):
    """The declarations may be those of healthy clients."""
    verdict = look(film(lambda t: released(t, **fields), until=100))

    assert "declare-mismatch" not in {rule for rule, _, _ in found(verdict)}
