"""Consumers that live for some seconds and return no message."""

import pytest

from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats


def lives(*, length=12.0, away=0.0, kind="classic", offset=None, rate=12.0, redelivered=0.0, beside=0, acked=1.0):
    """A consumer that lives for `length` seconds, is away for `away`, and comes again as another one."""

    def frame(t):
        rounds, inside = divmod(t, length + away)
        here = inside < length
        published = int(rate * t)
        sent = int(rate * (rounds * length + min(inside, length))) if kind == "stream" else published
        names = [f"10.0.4.9:{6000 + int(rounds)} -> b"] * here + [f"10.0.5.{each}:1 -> b" for each in range(beside)]
        back = int(redelivered * t)
        return {
            "queues": (
                queue(
                    "tiles",
                    type=kind,
                    consumers=len(names),
                    messages=0,
                    messages_ready=0,
                    stats=stats(publish=published, deliver=sent + back, ack=int(acked * sent), redeliver=back or None),
                ),
            ),
            "consumers": tuple(
                consumer("tiles", channel_name=f"{name} (1)", connection_name=name, stream_offset=offset)
                for name in names
            ),
            "channels": tuple(channel(f"{name} (1)") for name in names),
            "connections": tuple(connection(name, client_name="spot") for name in names),
        }

    return frame


def about(frame, until=90):
    """The finding of consumer-flapping; None without one."""
    verdict = look(film(frame, until=until))
    return next((each for each in verdict.findings if each.rule == "consumer-flapping"), None)


@pytest.mark.parametrize("length", [4.0, 7.0])
def test_workers_that_acknowledge_all_before_they_end_are_no_warning(length):
    """Jobs and spot instances do so on purpose."""
    finding = about(lives(length=length))

    assert ("info", True) == (finding.severity, finding.facts["clean"])
    assert "Nothing was redelivered" in full_text(finding)
    assert "redelivered each time" not in full_text(finding)


@pytest.mark.parametrize("fields", [{"redelivered": 0.5}, {"acked": 0.0}])
def test_others_are_a_warning(fields):
    """Messages come back, or nothing is acknowledged."""
    finding = about(lives(length=4.0, **fields))

    assert ("warning", False) == (finding.severity, finding.facts["clean"])


@pytest.mark.parametrize("offset", [None, "next"])
@pytest.mark.parametrize("rate", [12.0, 150.0])
def test_a_reader_that_begins_with_the_newest_message_skips_what_comes_meanwhile(offset, rate):
    """Its count, and how to read it after all."""
    finding = about(lives(length=5.0, away=3.0, kind="stream", offset=offset, rate=rate), until=120)

    assert pytest.approx(3 / 8 * 120 * rate, rel=0.1) == finding.facts["skipped"]
    assert "were never sent to it" in full_text(finding)
    assert "store the offset" in full_text(finding)


@pytest.mark.parametrize(
    "fields", [{"offset": "last"}, {"offset": 4711}, {"away": 0.0}, {"beside": 1}, {"kind": "quorum"}]
)
def test_nothing_is_skipped_where_that_is_not_known(fields):
    """Another offset, no time away, or other readers."""
    finding = about(lives(**{"length": 5.0, "away": 3.0, "kind": "stream", **fields}), until=120)

    assert finding is None or finding.facts["skipped"] is None
