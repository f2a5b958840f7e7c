from dataclasses import replace

import pytest

from ackscope.findings import flat
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, frame, of, one

RULE = "retry-reaches-others"


def worked(t, name, *, published=7.0, came=0.0, rejected=0.0, counted=True, **fields):
    """A queue that is consumed at once: `came` messages a second arrive without a publish."""
    delivered = int((published + came) * t)
    counters = stats(publish=int(published * t), deliver=delivered, ack=delivered - int(rejected * t))
    return queue(name, stats=counters if counted else stats(), **fields)


def waiting(name="hold", exchange_name="trips", key=None, ready=9, **fields):
    """A delay queue that leads to an exchange."""
    own = {} if key is None else {"x-dead-letter-routing-key": key}
    arguments = {"x-message-ttl": 2500, "x-dead-letter-exchange": exchange_name, **own}
    return queue(name, **{"messages_ready": ready, "consumers": 0, "arguments": arguments, **fields})


def topology(kind="topic", key="trip.*", other_key=None, back="trips"):
    """The exchange of the publishers with two queues, and one that takes what is rejected to the delay queue."""
    return {
        "exchanges": [exchange("trips", kind), exchange("rejected", "fanout"), exchange("again", kind)],
        "bindings": [
            binding("trips", "fares", key),
            binding("trips", "maps", key if other_key is None else other_key),
            binding("rejected", "hold", ""),
            *([binding(back, "fares", key)] if back != "trips" else []),
        ],
    }


def scene(t, *, rate=4.0, copies=None, counted=True, hold=None, maps=None, fares=None, extra=(), **routes):
    """`fares` rejects some messages a second into `hold`; `maps` gets each of them again, unless stated otherwise."""
    came = rate if copies is None else copies
    source = {"x-dead-letter-exchange": "rejected", **(fares or {})}
    return frame(
        worked(t, "fares", came=rate, rejected=rate, counted=counted, arguments=source),
        worked(t, "maps", came=came, counted=counted, **(maps or {})),
        hold or waiting(),
        *extra,
        **topology(**routes),
    )


@pytest.mark.parametrize("rate", [2.5, 6.0, 40.0])
@pytest.mark.parametrize(
    "routes",
    [
        {},
        {"kind": "fanout", "key": ""},
        {"kind": "direct", "key": "trip.ended"},
        {"key": "trip.#"},
        {"other_key": "#"},
        {"other_key": "trip.ended"},
        {"other_key": "*.ended"},
        {"key": "trip.#", "other_key": "#.ended"},
    ],
    ids=str,
)
def test_copies_of_retries_are_counted(rate, routes):
    """Whatever the type of the exchange and the keys, if both queues take a key."""
    verdict = look(film(lambda t: scene(t, rate=rate, **routes), until=90))
    finding = one(RULE, verdict)

    assert [("warning", "hold")] == of(RULE, verdict)
    assert 0.9 * rate * 90 <= finding.facts["copies"] <= rate * 90 + 1
    assert (["fares"], ["maps"]) == (finding.facts["sources"], [each["name"] for each in finding.facts["others"]])
    assert {"fares", "maps", "hold"} == {each.name for each in finding.involved.queues}
    assert ["route", "copied", "rejected"] == [each.key for each in finding.evidence]


def test_dead_letters_of_a_quorum_queue_count_as_redelivered():
    """In each queue where they arrive, although nothing was requeued."""

    def at(t):
        parts = scene(t)
        fares, maps, hold = parts["queues"]
        work, other = (replace(each, stats=replace(each.stats, redeliver=int(4 * t))) for each in (fares, maps))
        return {**parts, "queues": (work, other, hold)}

    assert 350 <= one(RULE, look(film(at, until=90))).facts["copies"] <= 361


@pytest.mark.parametrize("hold", [waiting(), waiting(stats=stats(publish=1))], ids=["dead letters", "publishers too"])
def test_what_expires_in_the_work_queue_is_a_retry_too(hold):
    """It is in no counter of that queue."""

    def at(t):
        parts = scene(t, hold=hold)
        fares = worked(t, "fares", arguments={"x-dead-letter-exchange": "rejected", "x-message-ttl": 900})
        return {**parts, "queues": (fares, *parts["queues"][1:])}

    assert 350 <= one(RULE, look(film(at, until=90))).facts["copies"] <= 361


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    verdict = look(film(lambda t: scene(t, rate=9.0), until=7, every=7), thresholds=Thresholds.as_if_lasting())

    assert [("warning", "hold")] == of(RULE, verdict)


def test_for_a_few_seconds_it_is_information():
    """Messages of a queue that was recovered look like copies."""
    finding = one(RULE, look(film(lambda t: scene(t, rate=20.0), until=10)))

    assert ("info", "early") == (finding.severity, finding.certainty)


@pytest.mark.parametrize("counted", [True, False], ids=["published", "never used"])
def test_bindings_alone_are_information(counted):
    """Nothing is rejected yet."""
    finding = one(RULE, look(film(lambda t: scene(t, rate=0.0, counted=counted, hold=waiting(ready=0)), until=90)))

    assert ("info", "likely", 0) == (finding.severity, finding.certainty, finding.facts["copies"])
    assert "would be delivered" in text(finding).summary


def test_a_chain_of_delay_queues_is_followed():
    """The last of them is the one to correct."""
    extra = [waiting("hold2")]

    def at(t):
        parts = scene(t, hold=waiting(exchange_name="", key="hold2"), extra=extra)
        last = replace(extra[0], arguments={**extra[0].arguments, "x-dead-letter-routing-key": "trip.ended"})
        return {**parts, "queues": (*parts["queues"][:-1], last)}

    assert [("warning", "hold2")] == of(RULE, look(film(at, until=60)))


def test_a_queue_may_dead_letter_to_its_own_exchange():
    """Without any delay."""
    own = {"x-dead-letter-exchange": "trips"}
    verdict = look(film(lambda t: scene(t, fares=own, hold=waiting(exchange_name="", key="fares")), until=60))

    assert [("warning", "fares")] == of(RULE, verdict)
    assert one(RULE, verdict).facts["itself"]


def test_queues_that_share_a_delay_queue_get_the_retries_of_each_other():
    """Each is a source, and gets copies; its own retries are not among them."""

    def at(t):
        parts = scene(t)
        both = {"x-dead-letter-exchange": "rejected"}
        fares = worked(t, "fares", came=10.0, rejected=4.0, arguments=both)
        maps = worked(t, "maps", came=10.0, rejected=6.0, arguments=both)
        return {**parts, "queues": (fares, maps, parts["queues"][2])}

    finding = one(RULE, look(film(at, until=90)))
    copies = {each["name"]: each["copies"] for each in finding.facts["others"]}

    assert (["fares", "maps"], "warning") == (finding.facts["sources"], finding.severity)
    assert 350 <= copies["maps"] <= 361
    assert 530 <= copies["fares"] <= 541


def test_own_retries_of_the_other_queue_are_no_copies():
    """It has a delay queue of its own, which leads back to it alone."""

    def at(t, came):
        own = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "hold.maps"}
        parts = scene(t, extra=[waiting("hold.maps", "", "maps")])
        maps = worked(t, "maps", came=came, rejected=5.0, arguments=own)
        return {**parts, "queues": (parts["queues"][0], maps, *parts["queues"][2:])}

    assert [] == of(RULE, look(film(lambda t: at(t, 5.0), until=90)))
    assert 350 <= one(RULE, look(film(lambda t: at(t, 9.0), until=90))).facts["copies"] <= 361


def test_a_policy_is_corrected_by_a_command():
    """It works at once; an argument needs a new queue."""
    definition = {"dead-letter-exchange": "trips", "message-ttl": 2500}
    by_policy = replace(waiting(), arguments={}, policy="later", effective_policy=definition)
    said = text(one(RULE, look(film(lambda t: scene(t, hold=by_policy), until=60))))
    other = text(one(RULE, look(film(scene, until=60))))

    assert '"dead-letter-routing-key": "fares"' in said.steps[0].command
    assert '"dead-letter-exchange": ""' in said.steps[0].command
    assert "cannot be changed" in other.steps[0].text
    assert "without losing any" in other.steps[1].text


def test_a_second_queue_that_cannot_keep_up_is_a_consequence():
    """The copies are its load."""

    def at(t):
        parts = scene(t)
        counters = stats(publish=int(7 * t), deliver=int(8 * t), ack=int(8 * t))
        slow = queue("maps", messages_ready=int(3 * t), stats=counters)
        return {**parts, "queues": (parts["queues"][0], slow, parts["queues"][2])}

    verdict = look(film(at, until=400, every=10))

    assert RULE in [each.rule for each in verdict.findings]
    assert "maps" not in [each.subject.name for each in verdict.findings]
    assert {"hold"} == {each.subject.name for each in flat(verdict.findings) if each.rule == RULE}


@pytest.mark.parametrize(
    "fields",
    [
        {"copies": 0.0, "hold": waiting(exchange_name="", key="fares")},
        {"copies": 0.0, "back": "again", "hold": waiting(exchange_name="again")},
        {"copies": 0.0, "other_key": "map.*"},
        {"copies": 0.0, "other_key": "*.ended"},
        {"copies": 0.0, "kind": "headers", "key": ""},
        {"copies": 0.0, "fares": {"x-dead-letter-routing-key": "fares"}, "kind": "direct", "key": "fares",
         "other_key": "maps"},
        {"hold": waiting(exchange_name="elsewhere")},
        {"fares": {"x-dead-letter-exchange": None}},
        {"maps": {"published": 0.0}},
    ],
    ids=["by its name", "an exchange of its own", "other keys", "keys that no message has", "headers",
         "a key for each queue", "leads elsewhere", "nobody feeds the delay queue", "a log of retries"],
)  # fmt: skip
def test_what_looks_like_it_is_left_alone(fields):
    """One thing differs."""
    assert [] == of(RULE, look(film(lambda t: scene(t, **fields), until=90)))


def test_two_queues_with_a_key_each_may_share_a_delay_queue():
    """The key that is set when a message is rejected leads it back."""

    def at(t):
        return frame(
            *(
                worked(t, name, came=4.0, rejected=4.0,
                       arguments={"x-dead-letter-exchange": "rejected", "x-dead-letter-routing-key": name})
                for name in ("fares", "maps")
            ),
            waiting(exchange_name="again"),
            exchanges=[exchange("trips"), exchange("rejected"), exchange("again", "direct")],
            bindings=[
                *(binding("trips", name) for name in ("fares", "maps")),
                *(binding("again", name, name) for name in ("fares", "maps")),
                binding("rejected", "hold"),
            ],
        )  # fmt: skip

    assert [] == of(RULE, look(film(at, until=90)))


def test_a_dead_letter_exchange_with_several_queues_is_a_destination():
    """None of them leads back."""

    def at(t):
        return frame(
            worked(t, "fares", rejected=3.0, arguments={"x-dead-letter-exchange": "dead"}),
            worked(t, "dead.mail", published=0.0, came=3.0),
            worked(t, "dead.log", published=0.0, came=3.0),
            exchanges=[exchange("dead")],
            bindings=[binding("dead", "dead.mail"), binding("dead", "dead.log")],
        )

    assert [] == of(RULE, look(film(at, until=90)))


def test_a_delay_queue_of_publishers_fans_out():
    """That is what it is for."""

    def at(t):
        return frame(
            waiting(stats=stats(publish=int(5 * t))),
            worked(t, "fares", published=0.0, came=5.0),
            worked(t, "maps", published=0.0, came=5.0),
            exchanges=[exchange("trips")],
            bindings=[binding("trips", "fares"), binding("trips", "maps")],
        )

    assert [] == of(RULE, look(film(at, until=90)))


def clients(t, **of):
    """One channel for each consumer: `of` has its queue, and messages a second that it acknowledges and rejects."""
    made = []
    for place, (name, (queue_name, acked, rejected)) in enumerate(of.items()):
        peer = f"10.0.8.{place}:600 -> 10.0.0.1:5672"
        counters = stats(deliver=int((acked + rejected) * t), ack=int(acked * t))
        link = consumer(queue_name, channel_name=f"{peer} (1)", connection_name=peer)
        made.append((link, channel(f"{peer} (1)", stats=counters), connection(peer, client_name=name)))
    consumers, channels, connections = zip(*made, strict=True)
    return {"consumers": consumers, "channels": channels, "connections": connections}


@pytest.mark.parametrize("rate", [3.0, 30.0])
@pytest.mark.parametrize(
    ("of", "named"),
    [
        ({"pricing": ("fares", 7.0, 4.0), "drawing": ("maps", 9.0, 0.0)}, ("pricing",)),
        ({"new": ("fares", 2.0, 4.0), "old": ("fares", 5.0, 0.0), "drawing": ("maps", 9.0, 0.0)}, ("new",)),
        ({"one": ("fares", 3.0, 2.0), "two": ("fares", 3.0, 2.0)}, ("one", "two")),
        ({"starts": ("fares", 0.01, 0.0), "other": ("fares", 7.0, 4.0)}, ()),
        ({"drawing": ("maps", 9.0, 0.0)}, ()),
    ],
    ids=["one", "one of two", "both", "one of them is too new to know", "no consumer is listed"],
)
def test_the_clients_that_reject_are_involved(rate, of, named):
    """Never one that acknowledges all, nor a consumer of the queues that get the copies."""
    finding = one(RULE, look(film(lambda t: scene(t, rate=rate) | clients(t, **of), until=90)))

    assert (named, named) == (finding.involved.clients, tuple(finding.facts["clients"]))
    assert bool(named) == ("reject" in text(finding).cause.rsplit("rejected the message.", 1)[1])


def test_a_queue_whose_consumers_reject_nothing_is_not_said_to_retry():
    """`maps` dead-letters to the same delay queue, and acknowledges all that it gets."""

    def at(t):
        return scene(t, maps={"arguments": {"x-dead-letter-exchange": "rejected"}})

    finding = one(RULE, look(film(at, until=90)))

    assert (["fares", "maps"], ["fares"]) == (finding.facts["sources"], finding.facts["rejecting"])
    assert "Each retry of 'fares' in" in text(finding).summary
