"""Publishers that are refused at an exchange, beside other clients; what has a text of the same length."""

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning, looping, turns
from tests.unit.diagnosis.pictures import PEER, connection, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of

REFUSED, MISSING, CHURN = "pub-access-refused", "pub-missing-exchange", "channel-churn"
HERE = (exchange(""), exchange("amq.direct"), exchange("invoices.out"))


def refusal(name, word=""):
    """The text of a refused exchange; 4.x names the access."""
    return f"ACCESS_REFUSED - {word}access to exchange '{name}' in vhost '/' refused for user 'guest'"


def refused(t, said=None, *, version="3.10.8", received=100, rate=0.8, **fields):
    """A client that publishes a small message to `invoices.out` and loses its channel each time."""
    said = refusal("invoices.out") if said is None else said
    made = looping(t, sent=35 + len(said), received=received, rate=rate, version=version, **fields)
    return {**made, "exchanges": HERE}


def beside_devices(t, **fields):
    """Devices with MQTT come, publish, get a message and go, more often than the channels of the client."""
    made = refused(t, **fields)
    done, cycles = turns(t, 1.0, 0.0), turns(t, 0.8, 0.0)
    counters = stats(publish=done, deliver_get=int(10 * t) + done, ack=int(10 * t) + done)
    declares = fields.get("declares", 0) * cycles
    overview = churning(
        t, channels=cycles + done, connections=done, declares=declares, stats=counters, version="3.10.8"
    )
    device = connection(f"10.1.0.1:{5000 + done} -> 10.0.0.1:1883", protocol="MQTT 3.1.1", channels=None)
    return {**made, "overview": overview, "connections": (*made["connections"], device)}


@pytest.mark.parametrize("frame", [refused, beside_devices], ids=["alone", "beside devices"])
def test_a_refused_publisher_loses_everything(frame):
    """The messages of other clients are not its own: its bytes have room for one publish."""
    verdict = look(film(frame, until=60))

    assert [("warning", "connection", PEER)] == of(verdict, REFUSED)
    assert [] == [each for each in verdict.findings if each.rule == CHURN]
    expected = {"refused_exchanges": ["invoices.out"], "accepted_per_channel": 0.0, "user": "guest"}
    assert expected == {key: facts(verdict, REFUSED)[key] for key in expected}
    words = text(findings(verdict, REFUSED)[0])
    counted = "refused_published" in [item.key for item in findings(verdict, REFUSED)[0].evidence]
    assert (frame is refused) == counted
    assert "everything it sends is lost" in words.summary
    assert "Without confirms nobody tells" in words.cause


@pytest.mark.parametrize(("word", "version"), [("", "3.10.8"), ("write ", "4.3.6")])
def test_it_is_a_warning_as_soon_as_it_is_reported(word, version):
    """A permission does not change by itself, and one look says the same."""
    film_of = lambda until: film(  # noqa: E731
        lambda t: refused(t, refusal("invoices.out", word), version=version), until=until
    )

    assert [("warning", "connection", PEER)] == of(look(film_of(20)), REFUSED)
    assert [("warning", "connection", PEER)] == of(look(film_of(10), thresholds=Thresholds.brief()), REFUSED)


def test_the_pattern_that_the_user_needs_is_given():
    """It is added to what the user has; a dot of a name is not any character."""
    commands = [step.command or "" for step in text(findings(look(film(refused, until=60)), REFUSED)[0]).steps]

    assert "rabbitmqctl list_user_permissions guest" in commands
    assert r"rabbitmqctl set_permissions -p / guest CONFIGURE 'WRITE|^invoices\.out$' READ" in commands


@pytest.mark.parametrize("frame", [refused, beside_devices], ids=["alone", "beside devices"])
@pytest.mark.parametrize(
    "fields",
    [
        {"received": 65},
        {
            "said": "NOT_FOUND - no queue 'a-queue-with-a-name-so-long-that-it-fits-exactly' in vhost '/'",
            "received": 60,
        },
        {"said": refusal("invoices.other")},
    ],
    ids=["declares the exchange", "another text as long", "no such exchange"],
)
def test_what_looks_alike_is_no_refused_publisher(frame, fields):
    """Its bytes are too few for a publish, or no exchange has a name of that length."""
    assert [] == of(look(film(lambda t: frame(t, **fields), until=60)), REFUSED)


def test_a_client_that_declares_a_queue_each_time_is_not_judged():
    """The declaration may be what is refused."""
    assert [] == of(look(film(lambda t: refused(t, declares=1), until=60)), REFUSED)


def test_a_missing_exchange_with_a_text_as_long_is_told_as_such():
    """Its usual length speaks for it."""
    said = "NOT_FOUND - no exchange 'billing.events' in vhost '/'"
    verdict = look(film(lambda t: refused(t, said), until=90))

    assert ([], [("warning", "connection", PEER)]) == (of(verdict, REFUSED), of(verdict, MISSING))


def test_a_queue_that_may_be_the_refused_one_leaves_it_time():
    """A refused consumer of a queue whose name is three bytes longer has a text of that length."""

    def frame(t):
        return {**refused(t), "queues": (queue("invoices.out.v1"),)}

    assert [("info", "connection", PEER)] == of(look(film(frame, until=30)), REFUSED)
    assert [("warning", "connection", PEER)] == of(look(film(frame, until=90)), REFUSED)
