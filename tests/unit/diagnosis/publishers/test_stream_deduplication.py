from dataclasses import replace

import pytest

from ackscope.streams import StreamClients, StreamPublisher
from tests.unit.diagnosis.pictures import connection, film, full_text, look, queue, stats
from tests.unit.diagnosis.publishers.films import findings

RULE = "stream-deduplication"
LIFE = 20.0
"""Seconds between two restarts of the publisher."""


def publisher(life, confirmed, *, reference="scanner-1", stream="scans"):
    """One publisher of the stream protocol, in its n-th life."""
    return StreamPublisher(
        connection_name=f"10.0.0.9:{50000 + life} -> 10.0.0.1:5552",
        number=0,
        vhost="/",
        queue=stream,
        reference=reference,
        published=confirmed,
        confirmed=confirmed,
        errored=0,
    )


def restarted(t, *, rate=10.0, stored=208, grows=0.0, stream="scans", reference="scanner-1", errors=False, **fields):
    """A publisher that starts again every 20 s with the same ids; all is confirmed, and the stream stands still."""
    life, since = int(t // LIFE), t % LIFE
    mine = publisher(life, int(rate * since), reference=reference, stream=stream)
    if errors:
        mine = replace(mine, confirmed=0, errored=int(rate * since))
    length = stored + int(grows * t)
    made = {"type": "stream", "messages": length, "messages_ready": length, "stats": stats(), **fields}
    return {
        "queues": (queue(stream, **made),),
        "connections": (connection(mine.connection_name, client_name="scanner", protocol="stream", channels=0),),
        "streams": StreamClients(consumers=(), publishers=(mine,)),
    }


@pytest.mark.parametrize(("rate", "stream"), [(10.0, "scans"), (4.0, "dlq"), (400.0, "a")])
def test_what_is_confirmed_and_not_stored_was_discarded(rate, stream):
    """It names the publisher by its reference and its client; first as information."""
    frame = lambda t: restarted(t, rate=rate, stream=stream)  # noqa: E731
    (early,) = findings(look(film(frame, until=45)), RULE)
    (late,) = findings(look(film(frame, until=110)), RULE)

    assert ("info", "warning") == (early.severity, late.severity)
    assert (stream, ["scanner-1"], ("scanner",)) == (
        late.subject.name, late.facts["references"], late.involved.clients,
    )  # fmt: skip
    assert 0.5 * rate * 60 <= late.facts["discarded"] <= rate * 65
    assert "discards the rest as duplicates" in full_text(late)


@pytest.mark.parametrize(
    "fields",
    [
        {"grows": 10.0},
        {"grows": 7.0},
        {"reference": None},
        {"arguments": {"x-max-age": "1h"}},
        {"effective_policy": {"max-length-bytes": 10**9}},
        {"errors": True},
        {"rate": 0.3},
    ],
    ids=["all is stored", "most is stored", "no name", "max-age", "max-length-bytes", "refused", "few"],
)
def test_what_proves_no_discarded_messages(fields):
    """Without a name nothing is discarded, and with retention the length does not tell."""
    assert [] == findings(look(film(lambda t: restarted(t, **fields), until=110)), RULE)


def test_what_was_stored_before_the_restart_does_not_hide_it():
    """Much was published in the same minute, before the ids began again."""

    def frame(t):
        quick = t < 60
        made = restarted(t) if not quick else restarted(t % LIFE)
        mine = publisher(9, int(100 * t)) if quick else made["streams"].publishers[0]
        length = int(100 * min(t, 60))
        return {
            **made,
            "queues": (queue("scans", type="stream", messages=length, messages_ready=length, stats=stats()),),
            "streams": StreamClients(consumers=(), publishers=(mine,)),
        }

    (finding,) = findings(look(film(frame, until=95)), RULE)

    assert "info" == finding.severity
    assert finding.facts["discarded"] <= 10 * 35


def test_a_client_that_repeats_its_last_messages_once_is_no_warning():
    """It continues with new ones afterwards."""

    def frame(t):
        there = publisher(1, int(10 * t))
        length = 208 + int(10 * max(0.0, t - 30))
        return {
            "queues": (queue("scans", type="stream", messages=length, messages_ready=length, stats=stats()),),
            "connections": (connection(there.connection_name, client_name="scanner", protocol="stream"),),
            "streams": StreamClients(consumers=(), publishers=(there,)),
        }

    assert [] == [each for each in findings(look(film(frame, until=110)), RULE) if each.severity != "info"]
