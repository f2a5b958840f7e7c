"""A client may not declare or bind: the error's length and a cycle's bytes tell which permission it lacks."""

import pytest

from ackscope.findings import flat
from ackscope.topology import Exchange
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import film, look, queue, text

ERROR = 35
"""Bytes of the broker's packets beside the text of its error."""


def refused(error, received, *, queues=("stock.in", "a"), exchanges=("warehouse",), user="bob", rate=4.0, **fields):
    """A client whose channels end with this text and take so many bytes each; and the objects that exist."""

    def frame(t):
        sent = ERROR + len(error.encode())
        return {
            **looping(t, rate=rate, sent=sent, received=received, user=user, **fields),
            "queues": tuple(queue(name) for name in queues),
            "exchanges": tuple(Exchange(vhost="/", name=name, type="topic") for name in exchanges),
        }

    return look(film(frame, until=60))


def refusals(result):
    """What the user may not do, as access, kind and names."""
    (finding,) = (each for each in flat(result.findings) if each.rule == "channel-churn")
    text(finding)
    return [(each["access"], each["kind"], each["names"]) for each in finding.facts["refusals"]]


def error(access, kind, name, user="bob"):
    """The text of 4.3.6."""
    return f"ACCESS_REFUSED - {access} access to {kind} '{name}' in vhost '/' refused for user '{user}'"


TOPIC = "ACCESS_REFUSED - read access to topic 'stock.new' in exchange 'warehouse' in vhost '/' refused for user 'bob'"


@pytest.mark.parametrize(
    ("said", "received", "expected"),
    [
        (error("configure", "queue", "stock.in"), 53, ("configure", "queue", ["stock.in"])),
        (error("configure", "queue", "stock.reports"), 58, ("configure", "queue", [])),
        (error("configure", "queue", "stock.in"), 53 + 24, ("configure", "queue", ["stock.in"])),
        (error("configure", "exchange", "warehouse"), 60, ("configure", "exchange", ["warehouse"])),
        (error("write", "queue", "stock.in"), 67, ("write", "queue", ["stock.in"])),
        (error("read", "exchange", "warehouse"), 67, ("read", "exchange", ["warehouse"])),
    ],
    ids=["declare", "declare a new one", "of a type", "declare exchange", "bind, queue", "bind, exchange"],
)
def test_what_was_seen_on_a_broker_is_named(said, received, expected):
    """Texts and bytes of pika and 4.3.6."""
    assert [expected] == refusals(refused(said, received))


def test_a_binding_with_a_key_may_be_the_declaration_of_a_long_new_name():
    """Both numbers fit both, so both are named, with the commands for both."""
    result = refused(TOPIC, 73)
    (finding,) = (each for each in flat(result.findings) if each.rule == "channel-churn")
    commands = " ".join(step.command or "" for step in text(finding).steps)

    assert [("configure", "queue", []), ("read", "topic", ["warehouse"])] == refusals(result)
    assert "list_user_topic_permissions" in commands
    assert "set_permissions" in commands


def test_a_binding_with_a_key_alone():
    """The other reading has a name that is too long for this cycle."""
    said = TOPIC.replace("stock.new", "stock.new.parts")

    assert [("read", "topic", ["warehouse"])] == refusals(refused(said, 79 - 7, queues=("a",)))


@pytest.mark.parametrize("user", ["o", "billing-service"])
@pytest.mark.parametrize("name", ["q", "夜.b", "a.rather.long.name.of.a.queue"])
@pytest.mark.parametrize("rate", [0.6, 9.0])
def test_other_names_users_and_rates(user, name, rate):
    """The name counts by its bytes."""
    size = len(name.encode())
    result = refused(error("configure", "queue", name, user), 45 + size, queues=(name,), user=user, rate=rate)

    assert ("configure", "queue", [name]) in refusals(result)


def test_the_finding_says_what_to_grant():
    """With the commands; the other two patterns are to be repeated."""
    result = refused(error("configure", "queue", "stock.in"), 53)
    (finding,) = (each for each in flat(result.findings) if each.rule == "channel-churn")
    words = text(finding)

    assert "user 'bob' probably may not declare this queue (403)" in words.cause
    assert any("set_permissions -p / bob" in (step.command or "") for step in words.steps)


@pytest.mark.parametrize(
    ("said", "received", "fields"),
    [
        (error("configure", "queue", "stock.in"), 53, {"version": "3.10.8"}),
        (error("configure", "queue", "stock.in"), 53, {"declares": 1}),
        ("NOT_FOUND - no queue 'stock.in' in vhost '/'", 53, {}),
        ("NOT_FOUND - no exchange 'stock' in vhost '/'", 90, {}),
        ("PRECONDITION_FAILED - unknown delivery tag 5", 46, {}),
        ("RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'x' in vhost '/'", 46, {}),
        (error("configure", "queue", "stock.reports"), 300, {}),
        (TOPIC, 120, {}),
    ],
    ids=["old", "counted", "missing queue", "missing exchange", "tag", "locked", "more bytes", "a publish"],
)
def test_other_errors_are_not_taken_for_a_refusal(said, received, fields):
    """Another version, a declaration that was counted, another text, or a cycle that does something else."""
    assert [] == refusals(refused(said, received, **fields))


def test_where_only_the_length_fits_several_objects_none_is_named():
    """Many queues have names of one length."""
    said = error("write", "queue", "shard-01")

    assert [] == refusals(refused(said, 67, queues=[f"shard-{number:02}" for number in range(30)]))
