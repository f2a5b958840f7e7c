"""A queue and an exchange that do not exist: errors are as long where the name of the queue has three bytes more."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import PEER, film, full_text, look, queue, stats
from tests.unit.diagnosis.publishers.films import exchange, of

MISSING, CHURN = "pub-missing-exchange", "channel-churn"
ERROR = len("NOT_FOUND - no exchange 'fault.nowhere' in vhost '/'")
GONE = queue("fault.stale-head", consumers=0, stats=stats(publish=50, deliver=50, deliver_get=50, ack=50))
FILLS = queue("orders.in.eu.v02", consumers=0)


def asking(received, *, packets=3, deleted=GONE):
    """A client that gets this error five times a second; until second 20 there was a queue with a name as long."""
    sent = 16 + 19 + ERROR + 12 * (packets - 2)

    def frame(t):
        made = looping(t, sent=sent, packets=packets, received=received, began=20.0, client_name="billing")
        filling = replace(FILLS, messages_ready=int(5 * t), stats=stats(publish=int(5 * t)))
        made |= {"exchanges": (exchange(""),), "queues": (deleted,) if t < 20 else ()}
        if deleted is FILLS:
            made["queues"] = (filling,)
        return made

    return frame


def churn(verdict):
    """The finding of the loop, also as a consequence."""
    (finding,) = (each for each in flat(verdict.findings) if each.rule == CHURN)
    return finding


@pytest.mark.parametrize("deleted", [GONE, FILLS], ids=["deleted", "had another name"])
@pytest.mark.parametrize("received", [166, 166 - 13, 900])
def test_who_sends_more_than_a_request_for_the_queue_publishes(received, deleted):
    """A publish in confirm mode with a message of 64 bytes, as many without confirms, and a larger one."""
    packets = 2 if received == 153 else 3
    verdict = look(film(asking(received, packets=packets, deleted=deleted), until=90))

    assert [("warning", "connection", PEER)] == of(verdict, MISSING)
    assert None is churn(verdict).facts["not_found"]


@pytest.mark.parametrize(
    ("received", "fields", "queue_first"),
    [
        (46 + 16 + 38 + 19, {}, True),
        (145, {}, False),
        (145, {"deleted": FILLS}, False),
        (46 + 16 + 38 + 19, {"deleted": FILLS}, True),
    ],
)
def test_both_are_named_where_the_bytes_fit_both(received, fields, queue_first):
    """The more probable one first: few messages are as small as the request of a consumer without arguments."""
    verdict = look(film(asking(received, **fields), until=90))

    assert [] == of(verdict, MISSING)
    finding = churn(verdict)
    name = fields.get("deleted", GONE).name
    known = finding.facts["not_found"]
    assert (queue_first, 13, [name]) == (known["queue_first"], known["exchange_bytes"], known["gone"] or known["alike"])
    words = " ".join(full_text(finding).split())
    assert f'"{name}"' in words or f"'{name}'" in words
    first = "probably asks for that queue, or else publishes to an exchange that does not exist"
    second = "probably publishes to an exchange that does not exist, or else asks for that queue"
    assert (first if queue_first else second) in words


def test_too_few_bytes_for_a_publish_are_a_request_for_the_queue():
    """basic.get has 41 bytes beside the name."""
    known = churn(look(film(asking(41 + 16, packets=2), until=90))).facts["not_found"]

    assert (None, True) == (known["exchange_bytes"], known["queue_first"])


@pytest.mark.parametrize("deleted", [queue("fault.stale-heads"), replace(GONE, stats=stats(publish=5))])
def test_a_queue_with_a_longer_name_or_without_consumers_is_not_asked_for(deleted):
    """Then it is a missing exchange, as before."""
    verdict = look(film(asking(130, deleted=deleted), until=90))

    assert [("warning", "connection", PEER)] == of(verdict, MISSING)
