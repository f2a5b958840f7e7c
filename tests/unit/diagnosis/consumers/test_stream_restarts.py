"""Readers of a stream that subscribe again and again."""

import pytest

from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats


def reading(
    *,
    lives=12.0,
    away=3.0,
    rate=50.0,
    offset="first",
    client="audit-reader",
    stored=3000,
    beside=0,
    at_once=1,
    until=1e9,
):
    """A stream whose readers live for some seconds, and others that stay; offset and client may differ by life."""

    def of(life, choice):
        return choice(life) if callable(choice) else choice

    def frame(t):
        rounds, inside = divmod(min(t, until), lives + away)
        life, inside = int(rounds), inside + max(0.0, t - until)
        here = inside < lives or t > until
        whole, sent = int(rate * lives), int(rate * inside)
        known = [(f"10.0.0.{9 + place}:5000 -> b", f"steady-{place}", "next", int(10 * t)) for place in range(beside)]
        if here:
            known += [
                (f"10.0.1.{place}:{5000 + life} -> b", of(life, client), of(life, offset), sent)
                for place in range(at_once)
            ]
        total = at_once * (whole * life + (sent if here else whole)) + beside * int(10 * t)
        return {
            "queues": (
                queue(
                    "audit.log", type="stream", consumers=len(known), messages=stored + int(10 * t),
                    messages_ready=stored, stats=stats(publish=stored + int(10 * t), deliver=total, ack=total),
                ),
            ),
            "consumers": tuple(
                consumer("audit.log", channel_name=f"{name} (1)", connection_name=name, stream_offset=begins)
                for name, _, begins, _ in known
            ),
            "channels": tuple(channel(f"{name} (1)", stats=stats(deliver=got, ack=got)) for name, _, _, got in known),
            "connections": tuple(connection(name, client_name=who) for name, who, _, _ in known),
        }  # fmt: skip

    return frame


def about(frame, until=90):
    """The finding of consumer-flapping about the stream; None without one."""
    verdict = look(film(frame, until=until))
    return next((each for each in verdict.findings if each.rule == "consumer-flapping"), None)


@pytest.mark.parametrize(
    ("fault", "client"),
    [
        (reading(), "audit-reader"),
        (reading(client="indexer-7", lives=7.0, away=4.0, rate=200.0, stored=90_000, beside=2), "indexer-7"),
        (reading(lives=30.0, away=10.0, rate=8.0), "audit-reader"),
        (reading(client="projector", at_once=3, lives=8.0, away=4.0), "projector"),
    ],
    ids=["alone", "beside others", "slow", "instances"],
)
def test_a_reader_that_begins_at_the_first_message_each_time_is_a_warning(fault, client):
    """It ends before it reached what is new."""
    finding = about(fault, until=165)
    report = full_text(finding)

    assert ("warning", "audit.log", [client]) == (finding.severity, finding.subject.name, finding.facts["clients"])
    assert ("first", True) == (finding.facts["reread"]["offset"], finding.facts["reread"]["short"])
    assert (client,) == finding.involved.clients
    assert "from its first message each time" in report
    assert "redelivered each time" not in report


@pytest.mark.parametrize("until", [25, 40, 90])
def test_one_restart_is_information(until):
    """A new version of the reader begins at the first message too."""
    finding = about(reading(until=15.0), until=until)

    assert finding is None or "info" == finding.severity


@pytest.mark.parametrize(
    "calm",
    [
        # It reads once, and stays.
        reading(until=5.0),
        # It stored its offset.
        reading(offset=lambda life: 600 * life),
        # Each is another client.
        reading(client=lambda life: f"replay-{'abcdefghijk'[life]}"),
        # It asks for what is new, or for the latest minutes.
        reading(offset="next"),
        reading(offset="5m"),
        reading(offset=None),
        # It looks at a few messages.
        reading(rate=3.0),
        # It reads all.
        reading(rate=500.0),
        reading(stored=100),
    ],
    ids=["stays", "stored", "others", "next", "interval", "not given", "few", "all", "perhaps all"],
)
def test_readers_that_read_what_they_have_not_read(calm):
    """They may connect and disconnect too often, but no summary accuses them of reading the same messages only."""
    findings = [about(calm, until=until) for until in (30, 45, 60)]

    assert not [
        each for each in findings if each is not None and each.facts["reread"] and each.facts["reread"]["short"]
    ]


def test_a_stream_redelivers_nothing():
    """The cause of a reader that comes and goes says what a stream does; a fixed offset is named."""
    stored, fixed = (
        about(reading(lives=6.0, away=4.0, offset=lambda life: 600 * life)),
        about(reading(lives=6.0, away=4.0, offset=4711)),
    )

    for finding in (stored, fixed):
        assert "A stream redelivers nothing" in full_text(finding)
    assert "x-stream-offset 4711" in full_text(fixed)
    assert "again what it has read" not in full_text(stored)
