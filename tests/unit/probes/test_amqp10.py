"""The parts of the AMQP 1.0 probes that need neither a broker nor the library."""

import asyncio
from types import SimpleNamespace

import pytest

from ackscope.errors import MissingPart, Unsupported
from ackscope.records import Outcome, ProbeState
from probes.amqp10 import connection
from probes.amqp10.links import Amqp10Sender, LinkEnded, PublishOutcome, Received, Settlement, condition_text
from probes.amqp10.outcomes import wrong_counts, wrong_death, wrong_order
from probes.amqp10.publisher import NO_CREDIT, WINDOW_CLOSED, Amqp10Publisher, refuse_old
from probes.catalogue import PROBES, protocol_of
from probes.confirm_ledger import ConfirmLedger
from probes.payload import PayloadWriter
from probes.settings import AmqpSettings, ProbesSettings

SERVER = AmqpSettings(url="amqp://127.0.0.1:1").server()
WRITER = PayloadWriter("0" * 16, 1, 64)


def received(number, count=0, annotations=None):
    """One delivery of a probe message."""
    return Received(None, WRITER.write(number), 0.0, False, count, count == 0, annotations or {}, None)


def test_they_run_only_where_they_are_asked_for():
    """Their library is an extra, which may be missing."""
    own = {name for name in PROBES if protocol_of(name) == "amqp10"}

    assert own == {"settle", "reject", "outcomes"}
    assert not own & set(ProbesSettings().enabled)
    assert ("settle",) == ProbesSettings(enabled=("settle",)).enabled
    assert protocol_of("of a later version") == "amqp091"


def test_without_the_library_the_message_names_the_extra(monkeypatch):
    """One line that says how to get it."""
    monkeypatch.setitem(__import__("sys").modules, "proton", None)

    with pytest.raises(MissingPart, match=r"pip install 'ackscope\[amqp10\]'"):
        connection.library()


@pytest.mark.parametrize("product", ["RabbitMQ 3.13.7", "RabbitMQ 3.10.8", "Qpid 9.2.0", "unknown"])
def test_an_old_or_other_broker_is_unsupported(product):
    """The message names what is there."""
    with pytest.raises(Unsupported, match=f"127.0.0.1:1: AMQP 1.0 .* this is {product}"):
        refuse_old(product, SERVER)


@pytest.mark.parametrize("product", ["RabbitMQ 4.0.5", "RabbitMQ 4.3.6", "RabbitMQ 10.0.0-rc.1"])
def test_a_newer_broker_is_measured(product):
    """From 4.0 on the protocol needs no plugin."""
    refuse_old(product, SERVER)


def test_a_queue_name_is_percent_encoded_in_its_address():
    """A slash or a percent sign would be another address."""
    assert "/queues/a%2Fb%25%20%C3%BC" == connection.queue_address("a/b% ü")


def test_an_ending_tells_condition_and_text():
    """Either may be missing."""
    whole = LinkEnded("amqp:not-found", "no queue 'x'")

    assert ("amqp:not-found: no queue 'x'", "amqp:not-found") == (str(whole), whole.condition)
    assert ["amqp:not-found", "lost"] == [str(LinkEnded("amqp:not-found", "")), str(LinkEnded("", "lost"))]
    assert "no reason given" == condition_text(None)
    assert "a: b" == condition_text(SimpleNamespace(name="a", description="b"))


def test_a_delivery_that_is_not_the_expected_one_is_named():
    """Numbers count from the first message of the step."""
    assert wrong_order([received(8), received(9)], [8, 9]) is None
    assert "received message 2, 1, expected 1, 2" == wrong_order([received(9), received(8)], [8, 9])
    assert "received message nothing, expected 1" == wrong_order([], [8])
    assert wrong_counts([received(1), received(1, 1)], [0, 1]) is None
    assert "delivery-count is 0, 0, expected 0, 1" == wrong_counts([received(1), received(1)], [0, 1])


@pytest.mark.parametrize(
    ("deaths", "reported"),
    [
        ([{"queue": "q", "reason": "rejected", "count": 1}], None),
        (None, "the dead letter has no annotation x-opt-deaths with one entry"),
        ([{"queue": "q", "reason": "expired", "count": 1}], "reason is 'expired', expected 'rejected'"),
        ([{"queue": "other", "reason": "rejected", "count": 1}], "queue is 'other', expected 'q'"),
    ],
)
def test_the_record_of_a_death_is_checked(deaths, reported):
    """Queue, reason and count, in the annotation of AMQP 1.0."""
    found = wrong_death(received(1, annotations={} if deaths is None else {"x-opt-deaths": deaths}), "q")

    assert reported == found if reported is None else reported in found


class Broker:
    """What a publisher sees of its connection and link, moved by the test."""

    product = "RabbitMQ 4.3.6"
    where = "127.0.0.1:1"
    alive = True
    read_at = 0.0

    def __init__(self):
        self.raw = SimpleNamespace(credit=2, queued=0, delivery=lambda tag: None, stream=lambda data: None)
        self.raw.advance = lambda: setattr(self.raw, "credit", self.raw.credit - 1)
        self.link = None

    def flush(self):
        """Everything is sent at time 1."""
        return 1.0

    async def sender(self, address):
        """The link of the publisher."""
        self.link = Amqp10Sender(self.raw, self)
        return self.link

    async def until(self, done, within):
        """There is credit at once."""
        return done()

    def encode(self, body, **_):
        """A head and the body."""
        return b"head" + body


def publishing(scenario):
    """Run a test with a publisher beside such a broker."""

    async def run():
        broker = Broker()
        publisher = Amqp10Publisher(SERVER, broker, "q")
        settled, returned = [], []
        await publisher.confirms(lambda tag, at, **how: settled.append((tag, at, how)), returned.append)
        publisher.prepare("q", 4)
        return await scenario(broker, publisher, settled, returned)

    return asyncio.run(run())


def test_each_outcome_is_counted_as_in_0_9_1():
    """Accepted acks, released returns and then acks, the others refuse; frames are not known."""

    async def scenario(broker, publisher, settled, returned):
        broker.raw.credit = 10
        for _ in range(4):
            publisher.publish(b"body")
        for number, settlement in enumerate((Settlement.ACCEPTED, *list(Settlement)[1:4]), 1):
            publisher._answered(PublishOutcome(number, 2.0, settlement, "", {}))
        return settled, returned

    settled, returned = publishing(scenario)

    assert [False, True, False, True] == [how["nacked"] for _, _, how in settled]
    assert [1, 2, 3, 4] == [tag for tag, _, _ in settled]
    assert {None} == {how["multiple"] for _, _, how in settled}
    assert [b"body"] == returned


def test_a_publisher_leads_to_its_queue_only():
    """Another key would be ignored in silence."""

    async def scenario(broker, publisher, settled, returned):
        with pytest.raises(ValueError, match="leads to queue 'q'"):
            publisher.prepare("other", 4)

    publishing(scenario)


@pytest.mark.parametrize(("queued", "reported"), [(0, NO_CREDIT), (1, WINDOW_CLOSED)])
def test_a_broker_that_takes_nothing_for_a_while_blocks(monkeypatch, queued, reported):
    """A moment without credit does not; the next credit ends it, and wakes the publisher either way."""
    monkeypatch.setattr("probes.amqp10.publisher.BLOCKED_AFTER", 0.05)

    async def scenario(broker, publisher, settled, returned):
        heard = []
        publisher.on_blocked(heard.append, lambda: heard.append("unblocked"))
        publisher.on_credit(lambda: heard.append("more"))
        publisher.publish(b"body")
        publisher.publish(b"body")
        broker.link.flowed()  # still none
        broker.raw.credit = 1
        broker.link.flowed()
        broker.raw.credit, broker.raw.queued = 0 if not queued else 5, queued
        broker.link.flowed()
        async with asyncio.timeout(10):
            while not publisher.blocked:  # noqa: ASYNC110  a timer of the publisher makes it so
                await asyncio.sleep(0.01)
        broker.raw.credit, broker.raw.queued = 1, 0
        broker.link.flowed()
        return heard, publisher.blocked

    heard, blocked = publishing(scenario)

    assert ["more", reported, "unblocked", "more"] == heard
    assert blocked is False


def test_a_link_that_the_broker_ends_ends_the_session_of_the_probe():
    """The reason names queue and condition."""

    async def scenario(broker, publisher, settled, returned):
        broker.link.end(LinkEnded("amqp:resource-deleted", ""))
        return publisher.alive, str(publisher.closed.result())

    alive, why = publishing(scenario)

    assert (False, "127.0.0.1:1: the broker ended the link to queue 'q' (amqp:resource-deleted)") == (alive, why)


def test_the_ledger_claims_nothing_about_frames_that_it_does_not_know():
    """One outcome, without group and flag; a late answer is not counted again."""
    ledger = ConfirmLedger(5.0)
    ledger.publish(0.0, 0.0)
    ledger.publish(0.0, 0.0)
    (first,) = ledger.settle(1, 0.1, multiple=None, nacked=False).settled
    (second,) = ledger.expire(10.0)

    assert (Outcome.ACKED, None, None) == (first.outcome, first.multiple, first.group)
    assert Outcome.TIMED_OUT is second.outcome
    assert [] == ledger.settle(2, 11.0, multiple=None, nacked=False).settled


def test_unsupported_is_a_state_of_its_own():
    """Not a failure: no alarm follows from it."""
    assert "unsupported" == ProbeState.UNSUPPORTED
