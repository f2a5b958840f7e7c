from dataclasses import replace

import pytest

from ackscope.findings import ExchangeRef
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning, loop, looping, reconnecting, turns
from tests.unit.diagnosis.pictures import PEER, connection, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of

MISSING, REFUSED, LARGE = "pub-missing-exchange", "pub-access-refused", "pub-oversized-message"
THREE = (MISSING, REFUSED, LARGE)
HERE = (exchange(""), exchange("amq.topic", type="topic"), exchange("orders.in"))
MIB17 = 17 << 20


def cycle(text):
    """Bytes that the broker sends when it opens a channel and closes it with this text."""
    return 16 + 19 + len(text)


def loops(text, *, exchanges=HERE, vanish=None, **fields):
    """An application that loses its channel five times a second with this text."""

    def frame(t):
        there = exchanges if vanish is None or t < 30 else tuple(e for e in exchanges if e.name != vanish)
        return {**looping(t, **{"sent": cycle(text), **fields}), "exchanges": there}

    return frame


def no_exchange(name):
    """The text of all versions."""
    return f"NOT_FOUND - no exchange '{name}' in vhost '/'"


def refusal(name, word="write "):
    """4.x names the access; 3.10 does not."""
    return f"ACCESS_REFUSED - {word}access to exchange '{name}' in vhost '/' refused for user 'guest'"


TOO_LARGE = "PRECONDITION_FAILED - message size 17825792 is larger than configured max size 16777216"


def rules_of(verdict):
    """Return which of the three rules report something."""
    return {rule: of(verdict, rule) for rule in THREE if of(verdict, rule)}


@pytest.mark.parametrize(("until", "severity"), [(30, "info"), (90, "warning")])
def test_a_missing_exchange(until, severity):
    """Information first, because an application that starts in the wrong order looks the same."""
    verdict = look(film(loops(no_exchange("nope")), until=until))

    assert {MISSING: [(severity, "connection", PEER)]} == rules_of(verdict)
    expected = {"client": "billing", "missing_name_bytes": 4, "disappeared_exchanges": [], "refused_exchanges": []}
    assert expected == {key: facts(verdict, MISSING)[key] for key in expected}
    keys = ["refused_channels", "refused_published", "refused_error", "refused_received"]
    assert keys == [item.key for item in findings(verdict, MISSING)[0].evidence]


@pytest.mark.parametrize(
    ("name", "consumed", "expected"),
    [("lohn.v2", False, set()), ("lohn.v10", False, {MISSING}), ("lohn.v2", True, {MISSING})],
    ids=["as long", "longer", "it had consumers"],
)
def test_who_asks_for_the_former_name_of_a_queue_that_fills_is_no_publisher(name, consumed, expected):
    """The queue was deleted long ago; an error about `lohn.v1` is as long as one about a missing exchange."""
    loop_frame = loops("NOT_FOUND - no queue 'lohn.v1' in vhost '/'", received=98)

    def frame(t):
        filled = stats(publish=int(6 * t), **({"deliver": 10, "deliver_get": 10, "ack": 10} if consumed else {}))
        return {**loop_frame(t), "queues": (queue(name, consumers=0, messages_ready=10 + int(6 * t), stats=filled),)}

    assert expected == set(rules_of(look(film(frame, until=90))))


def test_an_exchange_that_disappeared_is_named():
    """Its name has the right length."""
    verdict = look(film(loops(no_exchange("orders.in"), vanish="orders.in"), until=90))

    assert ["orders.in"] == facts(verdict, MISSING)["disappeared_exchanges"]
    assert (ExchangeRef("/", "orders.in"),) == findings(verdict, MISSING)[0].involved.exchanges


def flapping(*, delivered=0, auto_delete=True):
    """An exchange is away for 25 s of each 40 s, and a publisher loses its channel whenever it is."""
    there = exchange("rates.eu", type="topic", auto_delete=auto_delete)

    def frame(t):
        away = t % 40 >= 15
        done = 5 * sum(1 for second in range(int(t)) if second % 40 >= 15)
        counters = stats(deliver_get=int((10 + delivered) * t), ack=int(10 * t))
        loop_frame = looping(t, sent=cycle(no_exchange("rates.eu")), stats=counters)
        there_now = loop_frame["connections"][0]
        mine = loop(0, name=PEER, client_name="feed")
        mine = replace(
            mine,
            send_cnt=3 + 2 * done,
            send_oct=549 + cycle(no_exchange("rates.eu")) * done,
            recv_cnt=6 + 4 * done,
            recv_oct=405 + 203 * done,
        )
        return {
            **loop_frame,
            "overview": churning(t, channels=done, stats=counters),
            "connections": (there_now, mine),
            "exchanges": HERE if away else (*HERE, there),
        }

    return frame


@pytest.mark.parametrize("delivered", [0, 900])
def test_an_exchange_that_comes_and_goes_is_named(delivered):
    """Whatever other clients do, and also while it is there: the publisher is refused again and again."""
    verdict = look(film(flapping(delivered=delivered), until=118))
    (finding,) = findings(verdict, MISSING)

    assert (["rates.eu"], True) == (finding.facts["disappeared_exchanges"], finding.facts["auto_deleted"])
    assert "warning" == finding.severity
    assert "the broker deletes it with its last binding" in text(finding).cause
    assert any("without auto-delete" in step.text for step in text(finding).steps)


def test_an_exchange_that_somebody_deletes_is_no_auto_delete_exchange():
    """The advice differs."""
    (finding,) = findings(look(film(flapping(auto_delete=False), until=118)), MISSING)

    assert (["rates.eu"], False) == (finding.facts["disappeared_exchanges"], finding.facts["auto_deleted"])


def test_an_error_of_direct_reply_to_has_the_length_of_a_missing_exchange():
    """Both are named, because nothing else tells them apart."""
    verdict = look(film(loops("PRECONDITION_FAILED - fast reply consumer does not exist"), until=90))

    (finding,) = findings(verdict, MISSING)
    assert "direct reply-to" in text(finding).summary
    assert "amq.rabbitmq.reply-to" in text(finding).cause
    (other,) = findings(look(film(loops(no_exchange("nope")), until=90)), MISSING)
    assert "direct reply-to" not in text(other).summary


def test_an_exchange_that_disappeared_with_a_name_of_another_length_is_not_named():
    """It is not the missing one."""
    verdict = look(film(loops(no_exchange("nope"), vanish="orders.in"), until=90))

    assert [] == facts(verdict, MISSING)["disappeared_exchanges"]


@pytest.mark.parametrize(
    ("word", "version"), [("write ", "4.3.6"), ("write ", "4.0.5"), ("", "3.10.8"), ("", "3.13.7")]
)
def test_a_user_that_may_not_write(word, version):
    """The text has exactly the length of a refusal for an exchange that exists; its words differ by version."""
    frame = loops(refusal("orders.in", word), version=version)
    verdict = look(film(frame, until=90))

    assert {REFUSED: [("warning", "connection", PEER)]} == rules_of(verdict)
    expected = {"user": "guest", "refused_exchanges": ["orders.in"], "unlikely_exchanges": ["amq.topic"]}
    assert expected == {key: facts(verdict, REFUSED)[key] for key in expected}


def test_the_default_exchange_has_another_name_there():
    """The broker calls it amq.default."""
    verdict = look(film(loops(refusal("amq.default")), until=90))

    assert {REFUSED: [("warning", "connection", PEER)]} == rules_of(verdict)
    assert ["amq.default"] == facts(verdict, REFUSED)["refused_exchanges"]
    assert (ExchangeRef("/", ""),) == findings(verdict, REFUSED)[0].involved.exchanges


def test_messages_that_are_too_large():
    """The text fits, and the client sends MiB before each close."""
    verdict = look(film(loops(TOO_LARGE, received=MIB17, rate=1.0), until=90))

    assert {LARGE: [("warning", "connection", PEER)]} == rules_of(verdict)
    assert MIB17 == facts(verdict, LARGE)["received_bytes"]


def test_large_messages_to_a_missing_exchange():
    """They are refused for their exchange, not for their size."""
    verdict = look(film(loops(no_exchange("nope"), received=MIB17, rate=1.0), until=90))

    assert {MISSING: [("warning", "connection", PEER)]} == rules_of(verdict)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": no_exchange("nope"), "declares": 1},
        {"text": "PRECONDITION_FAILED - unknown delivery tag 99", "received": 72},
        {"text": "", "sent": 28},
        {"text": no_exchange("nope"), "rate": 0.05},
    ],
    ids=["declares", "acknowledges", "closes itself", "seldom"],
)
def test_other_loops_are_not_reported(fields):
    """Declarations, acknowledgements and a channel for each publish are findings of other rules."""
    text, sent = fields.pop("text"), fields.pop("sent", None)

    def frame(t):
        return {**looping(t, sent=cycle(text) if sent is None else sent, **fields), "exchanges": HERE}

    assert {} == rules_of(look(film(frame, until=90)))


def test_connections_that_come_and_go_show_too_little():
    """The bytes of a closed connection are not known."""
    assert {} == rules_of(look(film(lambda t: {**reconnecting(t), "exchanges": HERE}, until=90)))


def test_channel_churn_is_a_consequence():
    """One cause is one finding."""
    verdict = look(film(loops(no_exchange("nope")), until=90))

    assert "channel-churn" not in [finding.rule for finding in verdict.findings]


def test_two_snapshots_are_enough():
    """The loop shows in both snapshots."""
    verdict = look(film(loops(no_exchange("nope")), until=8, every=8), thresholds=Thresholds.as_if_lasting())

    assert {MISSING: [("warning", "connection", PEER)]} == rules_of(verdict)


def test_a_connection_that_was_busy_once_is_no_loop():
    """Its packets of one moment have a mean that would fit; after that it is idle."""
    other = "10.0.0.9:50077 -> 10.0.0.1:5672"

    def frame(t):
        known = loops(no_exchange("nope"))(t)
        once = 3 + 12 * (t >= 45)
        burst = connection(other, send_cnt=once, send_oct=549 + 12 * 37 * (t >= 45), recv_cnt=once, recv_oct=5000)
        return {**known, "connections": (*known["connections"], burst)}

    for until in range(45, 75, 5):
        assert other not in [name for _, _, name in of(look(film(frame, until=until)), MISSING)]


def test_confirm_mode_is_a_packet_more_and_no_other_error():
    """A cycle has three packets with 47 bytes plus the text. Two-packet cycles would mean an error of 31 bytes."""
    text = no_exchange("fault.nowhere")
    verdict = look(film(loops(text, packets=3, sent=cycle(text) + 12, received=166), until=60))

    assert {MISSING: [("warning", "connection", PEER)]} == rules_of(verdict)
    assert 13 == facts(verdict, MISSING)["missing_name_bytes"]


def test_two_loops_are_distinguished():
    """Each by the length of its own error."""
    other = "10.0.0.8:50088 -> 10.0.0.1:5672"
    text, refused = no_exchange("nope"), refusal("orders.in")

    def frame(t):
        known = loops(text)(t)
        second = loop(t, name=other, sent=cycle(refused), client_name="second")
        overview = churning(t, channels=2 * turns(t, 5.0, 0.0))
        return {**known, "overview": overview, "connections": (*known["connections"], second)}

    verdict = look(film(frame, until=90))

    assert {MISSING: [("warning", "connection", PEER)], REFUSED: [("warning", "connection", other)]} == rules_of(
        verdict
    )


def test_a_connection_without_packet_counters_is_not_judged():
    """The length of the error is not known."""

    def frame(t):
        known = loops(no_exchange("nope"))(t)
        bare = [replace(each, send_cnt=None, send_oct=None) for each in known["connections"]]
        return {**known, "connections": tuple(bare)}

    assert {} == rules_of(look(film(frame, until=90)))


def test_a_message_that_is_too_large_is_found_whatever_else_the_cluster_counts():
    """Only a publish sends so many bytes before so short an answer."""

    def frame(t):
        known = loops(TOO_LARGE, received=MIB17, rate=0.8, packets=3, sent=cycle(TOO_LARGE) + 12)(t)
        return {**known, "overview": churning(t, channels=turns(t, 0.8, 0.0), declares=turns(t, 0.8, 0.0))}

    assert {LARGE: [("info", "connection", PEER)]} == rules_of(look(film(frame, until=40)))


@pytest.mark.parametrize(("word", "version"), [("write ", "4.3.6"), ("", "3.10.8")])
@pytest.mark.parametrize("key", ["floor.7.valve", "de.north.meter.0815.reading"])
def test_a_routing_key_that_a_topic_permission_refuses(word, version, key):
    """Its text is too long for a missing exchange with a usual name, and for a refused exchange."""
    said = (
        f"ACCESS_REFUSED - {word}access to topic '{key}' in exchange 'amq.topic' in vhost '/' refused for user 'guest'"
    )
    verdict = look(film(loops(said, version=version, received=400), until=90))

    assert {REFUSED: [("warning", "connection", PEER)]} == rules_of(verdict)
    found = facts(verdict, REFUSED)
    assert (True, ["amq.topic"]) == (found["topic"], found["refused_exchanges"])
    commands = [step.command or "" for step in text(findings(verdict, REFUSED)[0]).steps]
    assert any("set_topic_permissions -p / guest amq.topic" in each for each in commands)


def test_without_a_topic_exchange_a_long_text_is_a_missing_exchange():
    """Names of exchanges can be long."""
    long = "company.department.project.messages.orders.submitted.v2.production"
    verdict = look(film(loops(no_exchange(long), exchanges=(exchange(""),), received=400), until=90))

    assert [MISSING] == list(rules_of(verdict))


@pytest.mark.parametrize("name", ["amq.topic", "orders.in"])
@pytest.mark.parametrize("often", [0.5, 4.0])
def test_deliveries_of_others_do_not_hide_a_refused_publisher(name, often):
    """Consumers that left took messages meanwhile; the bytes of this loop have no room for one."""
    text = refusal(name)

    def frame(t):
        others = int(often * 5 * t)
        counters = stats(deliver_get=int(10 * t) + others, ack=int(10 * t) + others // 2)
        return {**looping(t, sent=cycle(text) + 12, packets=3, stats=counters), "exchanges": HERE}

    assert {REFUSED: [("warning", "connection", PEER)]} == rules_of(look(film(frame, until=90)))


@pytest.mark.parametrize("rate", [0.12, 0.3, 0.85, 1.0, 6.0])
@pytest.mark.parametrize("others", [0.0, 1.0, 2.1])
def test_a_refused_publisher_is_found_beside_connections_that_end_without_a_channel(rate, others):
    """MQTT clients and refused logins end connections that had no channel, and faster than the publisher."""
    said = refusal("orders.in")

    def frame(t):
        known = loops(said, rate=rate, received=99, heartbeat=60)(t)
        counters = stats(deliver_get=int(10 * t), ack=int(10 * t))
        churn = churning(t, channels=turns(t, rate, 0.0), connections=int(others * t), stats=counters)
        return {**known, "overview": churn}

    assert {REFUSED: [("warning", "connection", PEER)]} == rules_of(look(film(frame, until=120)))


@pytest.mark.parametrize(
    ("packets", "sent", "received", "counted"),
    [
        (2, 28, 99, {}),
        (4, 2 * cycle(refusal("orders.in")), 140, {"deliver_get": 1, "get_no_ack": 1}),
        (8, 4 * cycle(refusal("orders.in")), 300, {"deliver_get": 4}),
        (2, 28, 60, {"get_empty": 1}),
    ],
    ids=["a channel for each message", "polls one", "consumes some", "polls in vain"],
)
@pytest.mark.parametrize("others", [1.0, 2.1])
def test_a_client_that_closes_its_channels_is_not_refused_whatever_ends_beside_it(
    packets, sent, received, counted, others
):
    """Messages and names in its answers may be as long as a number of errors."""

    def frame(t):
        done = turns(t, 0.8, 0.0)
        known = loops("", rate=0.8, packets=packets, sent=sent, received=received, heartbeat=60)(t)
        mine = {name: each * done for name, each in counted.items()}
        counters = stats(**{"ack": int(10 * t), **mine, "deliver_get": int(10 * t) + mine.get("deliver_get", 0)})
        return {**known, "overview": churning(t, channels=done, connections=int(others * t), stats=counters)}

    assert {} == rules_of(look(film(frame, until=120)))
