import pytest

from ackscope.findings import flat
from ackscope.topology import Exchange
from diagnosis.churn_loops import text_bytes
from diagnosis.rules.clients._shared.refusals import refusal
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import film, found, look, only, queue, text

NAME = "ledger.lines"
RULE = "consumer-access-refused"


def refused(t, *, name=NAME, vhost="/", word="read ", version="4.3.6", received=88, **fields):
    """A user may not read a queue: two packets of 35 bytes and the error, and 88 bytes from the client, as on 4.3.6."""
    sent = 35 + text_bytes(refusal(word, "queue", NAME, "/", "guest"))
    waiting = queue(name, vhost=vhost, **{"consumers": 0, "messages_ready": 40, **fields})
    return {**looping(t, sent=sent, received=received, version=version), "queues": (waiting,)}


def test_the_text_is_as_long_as_that_of_the_broker():
    """121 bytes for this queue, virtual host and user, seen on 4.3.6."""
    assert 121 == text_bytes(refusal("read ", "queue", NAME, "consume_refused", "ledger-consume_refused"))


def test_client_user_and_queue_are_named():
    """The channels that the broker closes are its consequence."""
    finding = only(look(film(refused, until=30)))
    assert (RULE, "info") == (finding.rule, finding.severity)
    assert ("billing", "guest", [NAME], 40) == tuple(finding.facts[k] for k in ("client", "user", "queues", "waiting"))
    assert ["channel-churn"] == [each.rule for each in finding.consequences]


@pytest.mark.parametrize(
    ("received", "said"),
    [
        (46 + 12, "each time it consumes"),
        (46 + 12 + 38, "each time it consumes"),
        (41 + 12, "each time it gets a message or purges the queue"),
        (44 + 12, "each time it reads from it"),
        (30, "each time it reads from it"),
    ],
    ids=["a tag of the broker's", "a tag", "get or purge", "between", "too few"],
)
def test_what_the_client_asks_for_is_only_said_where_its_bytes_show_it(received, said):
    """Three requests need the permission to read: basic.consume has five bytes more than basic.get and queue.purge."""
    assert said in text(only(look(film(lambda t: refused(t, received=received), until=30)))).summary


def test_it_is_a_warning_after_three_minutes():
    """An application that is just being set up has its permissions by then."""
    assert [(RULE, "warning")] == [(rule, severity) for rule, severity, _ in found(look(film(refused, until=200)))]


def test_the_text_of_3_10_has_no_word_for_the_access():
    """Other versions have other lengths."""

    def at(version, word):
        return RULE in {
            each.rule for each in flat(look(film(lambda t: refused(t, word=word, version=version), 30)).findings)
        }

    assert (True, False) == (at("3.10.8", ""), at("3.10.8", "read "))
    assert (False, True) == (at("4.0.5", ""), at("4.0.5", "read "))


@pytest.mark.parametrize("fields", [{"name": "ledger.line"}, {"vhost": "shop"}], ids=["length", "vhost"])
def test_a_queue_that_it_cannot_be_is_not_named(fields):
    """Then it is another error."""
    assert RULE not in {rule for rule, _, _ in found(look(film(lambda t: refused(t, **fields), until=40)))}


def test_a_queue_without_a_consumer_is_more_likely_than_one_with():
    """Names of one length would have the same error."""

    def at(t):
        parts = refused(t)
        return {**parts, "queues": (*parts["queues"], queue("orders.lines", consumers=2))}

    assert [NAME] == only(look(film(at, until=30))).facts["queues"]


@pytest.mark.parametrize(("consumers", "rules"), [(2, {"pub-access-refused"}), (0, {RULE, "pub-access-refused"})])
def test_a_consumed_queue_is_unlikely_where_the_refusal_of_a_publish_has_the_same_length(consumers, rules):
    """The name of the exchange is four bytes shorter, because the other words of its text are longer."""
    sent = 35 + text_bytes(refusal("write ", "exchange", "invoices", "/", "guest"))

    def at(t):
        parts = refused(t, consumers=consumers)
        return {
            **parts, **looping(t, sent=sent, received=140, version="4.3.6"),
            "exchanges": (Exchange(vhost="/", name="invoices", type="direct"),),
        }  # fmt: skip

    said = {each.rule for each in flat(look(film(at, until=30)).findings)}
    assert rules == said & {RULE, "pub-access-refused"}
