"""A client that reads a whole stream again and again, as its counters tell."""

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats


def replays(*, period=100.0, rate=200.0, stored=4000, comes=6.0, offset="first", client="saldo-projektion", beside=0):
    """A stream whose only such reader begins again every `period` seconds, and is done before it ends.

    `beside` readers stay, and ask for the newest messages; `client` may be a function of the start.
    """

    def frame(t):
        life, inside = int(t / period), t % period
        published = int(comes * t)

        def whole(end):
            return min(int(rate * period), stored + int(comes * end))

        mine = min(int(rate * inside), stored + published) if offset == "first" else int(comes * inside)
        before = sum(
            whole((number + 1) * period) if offset == "first" else int(comes * period) for number in range(life)
        )
        name = client(life) if callable(client) else client
        known = [(f"10.0.1.1:{5000 + life} -> b", name, offset, mine)]
        known += [(f"10.0.0.{place}:5000 -> b", f"view-{place}", "next", published) for place in range(beside)]
        total = before + mine + beside * published
        return {
            "queues": (
                queue(
                    "journal", type="stream", consumers=len(known), messages=stored + published,
                    messages_ready=stored + published, stats=stats(publish=published, deliver=total, ack=total),
                ),
            ),
            "consumers": tuple(
                consumer("journal", channel_name=f"{peer} (1)", connection_name=peer, stream_offset=begins)
                for peer, _, begins, _ in known
            ),
            "channels": tuple(channel(f"{peer} (1)", stats=stats(deliver=sent)) for peer, _, _, sent in known),
            "connections": tuple(connection(peer, client_name=who) for peer, who, _, _ in known),
        }  # fmt: skip

    return frame


def about(frame, until=580):
    """The finding of consumer-flapping about the stream; None without one."""
    found = flat(look(film(frame, until=until)).findings)
    return next((each for each in found if each.rule == "consumer-flapping"), None)


@pytest.mark.parametrize(
    "fields",
    [{}, {"client": "索引", "period": 45.0, "rate": 900.0, "stored": 20_000, "beside": 2}],
    ids=["alone", "beside others"],
)
def test_a_client_that_reads_the_stream_from_its_first_message_at_each_start_is_information(fields):
    """It reached the end each time, so nothing is missed; it may be on purpose."""
    finding = about(replays(**fields))
    over = finding.facts["over"]

    assert ("info", "journal") == (finding.severity, finding.subject.name)
    assert (fields.get("client", "saldo-projektion"), "first") == (over["client"], over["offset"])
    assert over["times"] >= 2
    assert over["delivered"] >= 2 * over["messages"] > over["published"]
    assert "again and again from its first message" in full_text(finding)
    assert "on purpose" in full_text(finding)


@pytest.mark.parametrize(
    "fields",
    [
        {"period": 1e6},
        {"offset": "next"},
        {"stored": 20, "comes": 0.05},
        {"beside": 9, "period": 1e6},
        {"client": lambda life: f"job-{life}", "period": 25.0, "rate": 900.0},
    ],
    ids=["reads once", "reads what is new", "a few messages", "several readers", "other clients"],
)
@pytest.mark.parametrize("until", [60, 290, 580])
def test_others_that_read_much_are_not_named(fields, until):
    """Each message goes to each subscription once."""
    finding = about(replays(**fields), until)

    assert finding is None or finding.facts["over"] is None
