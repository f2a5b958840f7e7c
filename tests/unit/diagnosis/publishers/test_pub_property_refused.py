"""Messages that the broker refuses for a property (406), and the errors that have a text as long."""

from dataclasses import replace

import pytest

from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.clients.loops import churning, looping, turns
from tests.unit.diagnosis.pictures import PEER, film, full_text, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of

PROPERTY, REFUSED, MISSING, CHURN = (
    "pub-property-refused",
    "pub-access-refused",
    "pub-missing-exchange",
    "channel-churn",
)
THREE = (PROPERTY, REFUSED, MISSING)
NAMES = ("amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic")
LOG = "grep -B 1 -F 'operation basic.publish caused a channel exception' /var/log/rabbitmq/*.log | tail"


def user_id(claimed, user="guest"):
    """The text for a message of another user."""
    return f"PRECONDITION_FAILED - user_id property set to '{claimed}' but authenticated user was '{user}'"


def expiration(value, reason):
    """The text for an expiration that is none."""
    return f"PRECONDITION_FAILED - invalid expiration '{value}': {reason}"


def no_write(name, user="guest"):
    """The text of 4.x for an exchange that the user may not write."""
    return f"ACCESS_REFUSED - write access to exchange '{name}' in vhost '/' refused for user '{user}'"


def refusing(said, *, accepted=2, rate=1.3, user="guest", own=(), bound=(), body=800, received=None):
    """A client loses each channel with this text, after some messages that were accepted.

    Args:
        said: the error.
        accepted: messages that are accepted on each channel.
        rate: channels a second.
        user: of all clients.
        own: further exchanges.
        bound: exchanges from which a binding leads to a queue.
        body: bytes of a message.
        received: exchange -> messages a second.
    """
    bindings = tuple(Binding(vhost="/", source=each, destination="q", destination_type="queue") for each in bound)

    def frame(t):
        done = turns(t, rate, 0.0)
        made = looping(t, rate=rate, sent=35 + len(said), received=80 + (80 + body) * (accepted + 1), user=user)
        steady, client = made["connections"]
        counters = stats(publish=1000 + accepted * done, deliver_get=int(10 * t), ack=int(10 * t))
        counts = {name: int(each * t) + 5 for name, each in (received or {}).items()}
        kinds = {"amq.fanout": "fanout", "amq.headers": "headers", "amq.match": "headers", "amq.topic": "topic"}
        known = [
            exchange(name, type=kinds.get(name, "direct"), received=counts.get(name, 0)) for name in ("", *NAMES, *own)
        ]
        return {
            **made,
            "connections": (replace(steady, user=user, vhost="/"), replace(client, vhost="/")),
            "overview": churning(t, channels=done, stats=counters),
            "exchanges": tuple(known),
            "bindings": Bindings(listed=bindings),
        }

    return frame


def seen(frame, until=60):
    """Return the verdict, and which of the rules report something."""
    verdict = look(film(frame, until=until))
    return verdict, {rule: of(verdict, rule) for rule in THREE if of(verdict, rule)}


@pytest.mark.parametrize(
    ("claimed", "user", "rate", "accepted"),
    [
        ("svc-scan", "guest", 1.3, 2),
        ("svc-scn", "guest", 4.0, 1),
        ("billing-api", "guest", 0.8, 9),
        ("alice", "integration.bus", 2.0, 3),
        ("a", "b", 6.0, 1),
    ],
)
def test_a_foreign_user_id_is_no_refused_exchange(claimed, user, rate, accepted):
    """The text is as long as that of an exchange that each virtual host has, and nobody uses."""
    verdict, found = seen(refusing(user_id(claimed, user), rate=rate, accepted=accepted, user=user))
    (finding,) = findings(verdict, PROPERTY)

    assert {PROPERTY: [("warning", "connection", PEER)]} == found
    assert {"name": "user_id", "value_bytes": len(claimed)} in finding.facts["properties"]
    assert CHURN not in [each.rule for each in verdict.findings]
    words = full_text(finding)
    assert "set_permissions" not in words
    assert f"authenticated user was '{user}'" in words
    assert LOG in [step.command for step in text(finding).steps]


@pytest.mark.parametrize(("claimed", "body"), [("billing-2024", 640), ("svc", 2000)])
def test_a_message_is_too_large_for_a_request_of_a_consumer(claimed, body):
    """A queue has a name for which a refused consumer would get a text as long; the first message is refused."""
    said = user_id(claimed)
    name = "q" * (len(said) - len("ACCESS_REFUSED - read access to queue '' in vhost '/' refused for user 'guest'"))
    frame = refusing(said, accepted=0, body=body)

    def beside(t):
        return {**frame(t), "queues": (queue(name, messages_ready=5),)}

    verdict, found = seen(beside, until=90)

    assert {PROPERTY} == set(found)
    assert "consumer-access-refused" not in [each.rule for each in verdict.findings]


def test_exchanges_that_would_be_refused_with_a_text_as_long_are_named_as_unlikely():
    """The reader of the log may meet them."""
    verdict, _ = seen(refusing(user_id("svc-scan")))

    assert ["amq.match", "amq.topic"] == facts(verdict, PROPERTY)["unlikely_exchanges"]


@pytest.mark.parametrize(
    ("value", "reason", "first"),
    [
        ("60000.0", '{leftover_string,".0"}', PROPERTY),
        ("10min", '{leftover_string,"min"}', PROPERTY),
        ("never", "no_integer", PROPERTY),
        ("1764444000000", "{value_too_large,1764444000000}", PROPERTY),
        ("-1", "{value_negative,-1}", PROPERTY),
    ],
)
def test_an_expiration_that_is_no_number(value, reason, first):
    """Its text may also be that of a missing exchange, which the summary then says."""
    verdict, found = seen(refusing(expiration(value, reason)), until=90)
    (finding,) = findings(verdict, PROPERTY)

    assert {first: [("warning", "connection", PEER)]} == found
    assert "expiration" in [each["name"] for each in finding.facts["properties"]]
    likely = 0 < finding.facts["missing_name_bytes"] <= 30
    assert likely == ("an exchange that does not exist" in text(finding).summary)


def test_a_header_for_routes_that_is_no_array():
    """CC is a text in place of an array of texts."""
    said = 'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}'
    verdict, found = seen(refusing(said))

    assert {PROPERTY: [("warning", "connection", PEER)]} == found
    assert "routes" in [each["name"] for each in facts(verdict, PROPERTY)["properties"]]


def test_an_exchange_in_use_of_that_length_is_named_with_the_property():
    """Nothing tells them apart; so it is no warning at once, and the permission is only for one of them."""
    frame = refusing(user_id("svc-scan"), own=("audit.in2",), bound=("audit.in2",))
    verdict, found = seen(frame, until=30)
    (finding,) = findings(verdict, REFUSED)
    words = full_text(finding)

    assert {REFUSED: [("info", "connection", PEER)]} == found
    assert {REFUSED: [("warning", "connection", PEER)]} == seen(frame, until=90)[1]
    assert ["audit.in2"] == finding.facts["refused_exchanges"]
    assert "user_id that is not their user" in text(finding).summary
    assert "If the log says precondition_failed, no permission helps" in words
    assert "grep -B 1 -F 'caused a channel exception' " in words


@pytest.mark.parametrize("accepted", [0, 2])
def test_an_exchange_that_the_user_writes_now_is_not_refused(accepted):
    """All clients are that user, and the exchange gets messages: the user has the permission."""
    frame = refusing(
        user_id("svc-scanner"),
        accepted=accepted,
        own=("audit.inbox2",),
        bound=("audit.inbox2",),
        received={"audit.inbox2": 3.0},
    )
    verdict, found = seen(frame, until=90)

    assert {PROPERTY: [("warning", "connection", PEER)]} == found
    assert "audit.inbox2" in facts(verdict, PROPERTY)["unlikely_exchanges"]


def test_what_another_user_publishes_says_nothing_of_this_one():
    """The exchange is that of others."""

    def frame(t):
        made = refusing(
            no_write("audit.in2"), accepted=0, own=("audit.in2",), bound=("audit.in2",), received={"audit.in2": 3.0}
        )(t)
        other, client = made["connections"]
        return {**made, "connections": (replace(other, user="auditor"), client)}

    verdict, found = seen(frame)

    assert {REFUSED: [("warning", "connection", PEER)]} == found
    assert "would look the same" not in text(findings(verdict, REFUSED)[0]).summary


def test_a_refused_user_of_an_exchange_without_bindings():
    """All its messages are refused, so a permission is likely, too: both are named."""
    verdict, found = seen(refusing(no_write("amq.topic"), accepted=0, body=20), until=90)
    (finding,) = findings(verdict, REFUSED)

    assert {REFUSED: [("warning", "connection", PEER)]} == found
    assert "or publishes messages with a user_id" in text(finding).summary


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("NOT_FOUND - no exchange 'orders.eu.new' in vhost '/'", {MISSING}),
        ("ACCESS_REFUSED - read access to queue 'a-queue-with-9' in vhost '/' refused for user 'guest'", set()),
        ("PRECONDITION_FAILED - unknown delivery tag 17", {MISSING}),
    ],
    ids=["a missing exchange", "a consumer without permission", "an acknowledgement"],
)
def test_without_accepted_messages_a_short_cycle_is_no_refused_property(said, expected):
    """It may be the request of a consumer, or a publish to an exchange that is missing."""
    _, found = seen(refusing(said, accepted=0, body=0), until=90)

    assert PROPERTY not in found
    assert expected == set(found) - {REFUSED}


def test_the_name_of_the_own_user_is_accepted():
    """A text without a foreign name has another length."""
    _, found = seen(
        refusing("PRECONDITION_FAILED - a text of a length that nothing has, of any property, exchange, or user")
    )

    assert PROPERTY not in found


@pytest.mark.parametrize(("others", "rate"), [(6, 1.02), (4, 4.0), (40, 0.9)])
@pytest.mark.parametrize(
    ("said", "received"),
    [
        ("NOT_FOUND - no queue 'fault.queue-renamed.1' in vhost '/'", 105),
        ("ACCESS_REFUSED - queue 'fault.contention' in vhost '/' in exclusive use", 126),
        (expiration("10min", '{leftover_string,"min"}'), 130),
    ],
)
def test_messages_for_which_a_channel_has_no_room_are_of_other_clients(said, received, others, rate):
    """A client asks for a queue in vain, with a request of the size of a message, while others publish."""

    def frame(t):
        done = turns(t, rate, 0.0)
        counters = stats(publish=1000 + others * done, deliver_get=int(10 * t), ack=int(10 * t))
        made = looping(t, rate=rate, sent=35 + len(said), received=received)
        return {**made, "overview": churning(t, channels=done, stats=counters), "exchanges": (exchange(""),)}

    verdict, found = seen(frame, until=120)

    assert PROPERTY not in found
    assert CHURN in [each.rule for each in verdict.findings]


@pytest.mark.parametrize(("others", "reported"), [(40, False), (5, True)])
def test_a_busy_publisher_hides_whether_a_client_publishes_at_all(others, reported):
    """Its counters and those of the cluster are up to seconds apart: what is left over may be its messages."""
    said = expiration("10min", '{leftover_string,"min"}')

    def frame(t):
        done = turns(t, 0.67, 0.0)
        made = looping(t, rate=0.67, sent=35 + len(said), received=420)
        (busy,) = made["channels"]
        busy = replace(busy, stats=replace(busy.stats, publish=int(others * t)))
        counters = stats(publish=1000 + int(others * t) + 3 * done, deliver_get=int(10 * t), ack=int(10 * t))
        return {
            **made,
            "channels": (busy,),
            "overview": churning(t, channels=done, stats=counters),
            "exchanges": (exchange(""),),
        }

    _, found = seen(frame, until=30)

    assert reported == (PROPERTY in found)
