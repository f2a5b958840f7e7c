"""Connections that declare in vain beside an exclusive queue: its name may be what they ask for (405)."""

import pytest

from ackscope.findings import flat
from ackscope.topology import Feature
from tests.unit.diagnosis.clients.loops import churning, reconnecting, steady, turns
from tests.unit.diagnosis.pictures import PEER, connection, consumer, film, look, queue, stats, text

LOCATOR = Feature(name="queue_master_locator", deprecated=True, state="denied", stage="denied_by_default")


def asking(t, *, every=1.6, listed=False, name="rates.replies", owner="pos-1", published=0.0, declares=1, **fields):
    """A client that declares and is refused, beside the exclusive queue of another one that works."""
    done = turns(t, 1 / every, 0)
    there, consuming = steady(t)
    mine = connection(PEER, client_name=owner, user="guest")
    others = reconnecting(t, every=every)["connections"] if listed else (there,)
    moved = stats(deliver_get=int(10 * t), ack=int(10 * t), publish=int(published * t))
    held = {"exclusive": True, "durable": False, "consumers": 1} | fields
    return {
        "overview": churning(t, channels=done, connections=done, declares=declares * done, stats=moved),
        "connections": (*others, mine),
        "channels": (consuming,),
        "consumers": (consumer(name, channel_name=None),),
        "queues": (queue(name, **held),),
        "features": (LOCATOR,),
    }


def rules(verdict):
    """The names of all findings, also of consequences."""
    return sorted(each.rule for each in flat(verdict.findings))


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("every", [0.5, 1.6, 7.0])
@pytest.mark.parametrize(("name", "owner"), [("rates.replies", "pos-1"), ("ctl", "edge gateway")])
def test_a_locked_queue_is_the_first_candidate(name, owner, every, listed):
    """Every broker of that version denies the feature, so it is no evidence; nobody is advised to restart a node."""
    verdict = look(film(lambda t: asking(t, name=name, owner=owner, every=every, listed=listed), until=120))
    (finding,) = verdict.findings
    said = text(finding)

    assert ("connection-churn", "info") == (finding.rule, finding.severity)
    assert [{"queue": name, "vhost": "/", "clients": [owner]}] == finding.facts["locked"]
    assert f"'{name}' is exclusive to '{owner}'" in said.summary
    assert said.cause.index("405") < said.cause.index("406") < said.cause.index("541")
    assert any("RESOURCE_LOCKED" in (step.command or "") for step in said.steps)
    assert not any("restart the nodes" in step.text for step in said.steps)


@pytest.mark.parametrize(
    "fields",
    [{"name": "amq.gen-x7Q"}, {"exclusive": False}, {"published": 2.0}, {"declares": 0}],
    ids=["named by the broker", "not exclusive", "the loop publishes", "the loop declares nothing"],
)
def test_a_loop_that_asks_for_no_such_name_has_no_such_candidate(fields):
    """It is reported by other rules, or is slow."""
    verdict = look(film(lambda t: asking(t, **fields), until=120))

    assert not any(each.facts.get("locked") for each in flat(verdict.findings))
    assert "connection-churn" not in {each.rule for each in verdict.findings}


def test_a_queue_that_a_loop_makes_itself_is_none():
    """It comes and goes with its connection."""

    def frame(t):
        made = asking(t)
        return made if int(t / 5) % 2 else {**made, "queues": (), "consumers": ()}

    assert ["feature-denied"] == [each.rule for each in look(film(frame, until=120)).findings]


def test_a_listed_client_cannot_lock_itself_out_in_another_virtual_host():
    """It asks for names of its own."""
    verdict = look(film(lambda t: asking(t, listed=True, vhost="shop"), until=120))

    assert "feature-denied" in rules(verdict)
    assert not any(each.facts.get("locked") for each in flat(verdict.findings))


def test_beside_a_queue_that_grows_the_other_properties_come_first():
    """The queue exists and lacks its consumer."""

    def frame(t):
        made = asking(t)
        waiting = int(4 * t)
        grows = queue("till", consumers=0, messages_ready=waiting, stats=stats(publish=waiting))
        return {**made, "queues": (*made["queues"], grows)}

    (finding,) = (each for each in look(film(frame, until=120)).findings if each.rule == "connection-churn")
    said = text(finding)

    assert ("warning", ["till"]) == (finding.severity, finding.facts["starved"])
    assert said.cause.index("406") < said.cause.index("405")


def test_a_possibility_advises_no_restart():
    """Without an exclusive queue the denied feature stays a possibility, with the log as the next step."""
    verdict = look(film(lambda t: asking(t, exclusive=False), until=120))
    (finding,) = (each for each in verdict.findings if each.rule == "feature-denied")
    steps = text(finding).steps

    assert not any("restart" in step.text for step in steps)
    assert any(step.text.startswith("If the log names this feature, remove") for step in steps)
