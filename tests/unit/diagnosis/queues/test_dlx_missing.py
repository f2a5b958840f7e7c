import pytest

from ackscope.snapshot import Part
from ackscope.topology import Bindings
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, moment, queue, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "dlx-missing"
NO_EXCHANGE = {"x-dead-letter-exchange": "gone"}


def shot(until, *, exchanges=(), bindings=(), **fields):
    """The result for a queue whose consumer rejects half of the messages."""
    made = {"acked": 4.0, "rejected": 4.0, "arguments": NO_EXCHANGE, **fields}
    return look(film(lambda t: frame(flowing(t, **made), exchanges=exchanges, bindings=bindings), until=until))


def test_dead_letters_that_are_dropped_now_are_critical_after_a_minute():
    """A deployment may declare the exchange a little late."""
    assert [] == of(RULE, shot(10))
    assert [("warning", "gone")] == of(RULE, shot(20))
    assert [("critical", "gone")] == of(RULE, shot(65))


def test_a_route_that_is_missing_and_not_needed_yet_is_a_warning():
    """Nothing is rejected, expires or overflows."""
    idle = {"acked": 8.0, "rejected": 0.0}

    assert [("info", "gone")] == of(RULE, shot(20, **idle))
    assert [("warning", "gone")] == of(RULE, shot(65, **idle))


@pytest.mark.parametrize("fault", ["missing", "unbound"])
@pytest.mark.parametrize("rejected", [2.5, 3.0])
def test_a_small_share_that_is_dropped_is_proven_over_a_longer_time(rejected, fault):
    """The exchange, or its binding, is removed after 40 s: what was rejected before that arrived."""

    def made(t):
        there = t < 40 or fault == "unbound"
        return frame(
            flowing(t, published=15.0, acked=15.0 - rejected, rejected=rejected, arguments=NO_EXCHANGE),
            queue("dead", messages_ready=int(rejected * min(t, 40)), consumers=0),
            exchanges=(exchange("gone"),) if there else (),
            bindings=(binding("gone", "dead"),) if t < 40 else (),
        )

    early, later = (look(film(made, until=until)) for until in (45, 110))

    assert {"info", "warning"} >= {severity for severity, _ in of(RULE, early)}
    finding = one(RULE, later)
    assert "critical" == finding.severity
    assert finding.facts["dropped"] <= rejected * finding.facts["dropped_over_seconds"] <= rejected * 70


def test_the_finding_says_what_is_missing_and_how_to_create_it():
    """Queue, exchange and binding, as commands."""
    finding = one(RULE, shot(65))
    commands = [step.command for step in text(finding).steps if step.command]

    assert ("gone", None) == (finding.facts["exchange"], finding.facts["exchange_type"])
    assert ["/api/queues/%2F/gone.dead", "/api/exchanges/%2F/gone", "/api/bindings/%2F/e/gone/q/gone.dead"] == [
        command[command.index("/api/") :] for command in commands[1:]
    ]
    assert '{"type":"fanout","durable":true}' in commands[2]


def test_two_polls_find_it():
    """As `ackscope diagnose` does; what is dropped meanwhile is within the delay of the counters."""
    window = film(lambda t: frame(flowing(t, acked=4.0, rejected=4.0, arguments=NO_EXCHANGE)), until=6, every=6)

    assert [("warning", "gone")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


@pytest.mark.parametrize(
    ("arguments", "bindings", "key"),
    [(NO_EXCHANGE, (), None), ({**NO_EXCHANGE, "x-dead-letter-routing-key": "a"}, (binding("gone", "x", "b"),), "a")],
    ids=["no binding", "wrong key"],
)
def test_an_exchange_that_routes_nowhere_is_as_bad(arguments, bindings, key):
    """The facts show which case it is."""
    verdict = shot(65, arguments=arguments, exchanges=(exchange("gone", "direct"),), bindings=bindings)
    facts = one(RULE, verdict).facts

    assert ("direct", key, key) == (facts["exchange_type"], facts["routing_key"], facts["new_key"])


def test_a_target_queue_that_does_not_exist_is_reported():
    """Dead letters are sent to it through the default exchange."""
    verdict = shot(65, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bin"})

    assert ("", "bin") == tuple(one(RULE, verdict).facts[key] for key in ("exchange", "routing_key"))


def test_bindings_that_were_read_before_the_queue_was_declared_prove_nothing():
    """They are read once a minute: queue, exchange and binding may have been declared together since."""

    def late(t):
        there = {"exchanges": (exchange("gone"),)}
        if t < 30:
            return frame(**there)
        made = frame(flowing(t, acked=8.0, arguments=NO_EXCHANGE), **there)
        return {**made, "bindings": Part(value=made["bindings"], at=moment(29.0), seconds=0.1)}

    assert [] == of(RULE, look(film(late, until=80)))


def test_many_queues_with_one_exchange_are_one_finding():
    """The cause is one."""
    window = film(lambda t: frame(*(flowing(t, f"q{n}", acked=8.0, arguments=NO_EXCHANGE) for n in range(9))), until=65)

    assert [("warning", "gone")] == of(RULE, look(window))


@pytest.mark.parametrize(
    ("arguments", "exchanges", "bindings"),
    [
        ({}, (), ()),
        (NO_EXCHANGE, (exchange("gone"),), (binding("gone", "bin"),)),
        (NO_EXCHANGE, (exchange("gone", "headers"),), (binding("gone", "bin"),)),
        ({"x-dead-letter-exchange": ""}, (), ()),
        ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}, (), ()),
    ],
    ids=["no dead letters", "routed", "by headers", "no key", "itself"],
)
def test_dead_letters_that_are_or_may_be_routed_are_not_reported(arguments, exchanges, bindings):
    """Nothing is reported on a guess."""
    assert [] == of(RULE, shot(120, arguments=arguments, exchanges=exchanges, bindings=bindings))


def test_dead_letters_that_a_quorum_queue_keeps_are_not_dropped():
    """They are kept until they can be routed, which is another finding; before the first, it is a warning."""
    keeps = {**NO_EXCHANGE, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}

    def kept(held):
        totals = {"messages_dlx": held, "messages_ready": 0, "messages": held}
        return look(film(lambda _: frame(queue(type="quorum", arguments=keeps, **totals)), until=100))

    assert [] == of(RULE, kept(20))
    assert [("warning", "gone")] == of(RULE, kept(0))
    assert one(RULE, kept(0)).facts["keeps"]


def test_publishes_that_a_full_queue_refuses_are_no_dead_letters():
    """Its consumer rejects none, and what it refused is still with the publisher."""
    full = {**NO_EXCHANGE, "x-max-length": 10, "x-overflow": "reject-publish"}
    verdict = shot(65, ready=10, acked=0.0, rejected=0.0, arguments=full)

    assert 0 == one(RULE, verdict).facts["dropped"]
    assert [("critical", "orders")] == of("pub-nacked-overflow", verdict)


def test_without_bindings_it_is_inconclusive():
    """But an exchange that does not exist needs no bindings."""

    def blind(t):
        made = frame(flowing(t, arguments={"x-dead-letter-exchange": "there"}), exchanges=(exchange("there"),))
        return {**made, "bindings": Part(error="timed out")}

    verdict = look(film(blind, until=65))

    assert [] == of(RULE, verdict)
    assert ["bindings_not_read"] == [each.reason for each in verdict.inconclusive if each.rule == RULE]


def returning(*, keys=("back",), rejected=3.0, routed=("work",), kind="direct", own_key=None):
    """A consumer rejects into a delay queue whose messages keep their key; exchange `again` routes some keys.

    `keys` are the bindings of the delay queue, besides its name.
    """

    def at(t):
        arguments = {"x-message-ttl": 2000, "x-dead-letter-exchange": "again"}
        if own_key is not None:
            arguments["x-dead-letter-routing-key"] = own_key
        work = flowing(
            t, "work", published=8.0, acked=8.0 - rejected, rejected=rejected,
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "later"},
        )  # fmt: skip
        later = queue("later", consumers=0, messages_ready=int(2 * rejected), arguments=arguments)
        bindings = [binding("again", "work", key) for key in routed] + [binding("in", "later", key) for key in keys]
        return frame(work, later, exchanges=(exchange("again", kind), exchange("in", "direct")), bindings=bindings)

    return at


@pytest.mark.parametrize("kind", ["direct", "topic"])
@pytest.mark.parametrize("rejected", [2.0, 7.5])
def test_dead_letters_that_keep_a_key_without_a_binding_are_lost(kind, rejected):
    """They arrive without a publish; how many is known from the queue that they come from."""
    verdict = look(film(returning(rejected=rejected, kind=kind, keys=()), until=70))
    finding = one(RULE, verdict)

    assert ("critical", "again", ["later"]) == (finding.severity, finding.subject.name, finding.facts["own_keys"])
    assert rejected * 40 <= finding.facts["dropped"] <= rejected * finding.facts["dropped_over_seconds"]
    assert "keep the routing key" in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [
        {"routed": ("later",), "keys": ()},
        {"own_key": "work"},
        {"keys": ("work",)},
        {"kind": "fanout"},
        {"kind": "topic", "routed": ("#",)},
    ],
    ids=["its name is bound", "a key is set", "a binding has the key", "any key", "a pattern"],
)
def test_a_key_that_may_be_routed_is_left_alone(fields):
    """What is not proven is not reported."""
    assert [] == of(RULE, look(film(returning(**fields), until=70)))


def test_a_queue_that_may_get_any_key_is_left_alone():
    """A fanout exchange leads to it, so its messages can have every key."""

    def at(t):
        picture = returning(keys=())(t)
        bound = (*picture["bindings"].listed, binding("all", "later"))
        there = (*picture["exchanges"], exchange("all", "fanout"))
        return {**picture, "exchanges": there, "bindings": Bindings(listed=bound)}

    assert [] == of(RULE, look(film(at, until=70)))


OWN_KEY = {"x-dead-letter-exchange": "graveyard"}


def unmatched(until, *, arrives=0.0, taken=0.0, target=None, **fields):
    """Dead letters keep their own keys; the bound queue gets `arrives` a second, and its consumer takes `taken`."""
    made = {"acked": 9.0, "rejected": 3.0, "published": 12.0, "arguments": OWN_KEY, **fields}
    bound = {"consumers": 0, **(target or {})}

    def at(t):
        gone = int(taken * t)
        counters = stats(ack=gone, deliver=gone, deliver_get=gone)
        dead = queue("tomb", messages_ready=int((arrives - taken) * t), stats=counters, **bound)
        # Any key leads to the queue, so the keys of its messages are not known.
        routes = {
            "exchanges": (exchange("graveyard", "direct"), exchange("in", "topic")),
            "bindings": (binding("graveyard", "tomb", "other"), binding("in", "orders", "#")),
        }
        return frame(flowing(t, **made), dead, **routes)

    return look(film(at, until=until))


def test_dead_letters_whose_own_key_is_not_bound_are_found_by_what_arrives():
    """The key of a message is not shown; the counters of the queue that is bound show that none came."""
    assert [("critical", "graveyard")] == of(RULE, unmatched(90))
    finding = one(RULE, unmatched(90))

    assert (["tomb"], None) == (finding.facts["bound"], finding.facts["routing_key"])
    assert 150 <= finding.facts["dropped"] <= 270
    assert all("PUT" not in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize(
    "fields",
    [
        {"arrives": 3.0},
        {"arrives": 3.0, "taken": 3.0},
        {"target": {"arguments": {"x-message-ttl": 1000}}},
        {"target": {"arguments": {"x-max-length": 5}}},
        {"rejected": 0.0},
        {"arguments": {**OWN_KEY, "x-dead-letter-routing-key": "other"}},
    ],
    ids=["arrive", "arrive and are consumed", "target expires", "target is limited", "none rejected", "key is bound"],
)
def test_dead_letters_that_may_have_arrived_are_not_reported(fields):
    """Only what the bound queue certainly did not get is missing."""
    assert [] == of(RULE, unmatched(90, **fields))


@pytest.mark.parametrize(
    ("others", "offered"), [(("tomb",), True), (("tomb", "mails.dead"), False)], ids=["one", "two"]
)
def test_a_queue_that_is_bound_with_another_key_may_be_the_one_that_is_meant(others, offered):
    """Of one, the binding is offered; several may belong to other applications."""
    arguments = {"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "bills.dlq"}
    listed = tuple(binding("dead", name, f"{name}.key") for name in others)
    finding = one(RULE, shot(20, exchanges=(exchange("dead", "direct"),), bindings=listed, arguments=arguments))
    commands = " ".join(step.command or "" for step in text(finding).steps)

    assert sorted(others) == finding.facts["bound_with_other_keys"]
    assert offered == ("/e/dead/q/tomb" in commands)
    assert "/e/dead/q/dead.dead" in commands
    assert "bound with other keys" in text(finding).cause


@pytest.mark.parametrize(
    ("name", "bound", "lost"),
    [("q-77af", "q77af", True), ("报表", "report", True), ("q-77af", "q-77af", False), ("q-77af", None, True)],
    ids=["another key", "another name", "its name", "no binding"],
)
def test_messages_of_a_queue_without_a_binding_have_its_name_as_key(name, bound, lost):
    """They come through the default exchange. A backlog of a consumer that is too slow hides no missing route."""

    def at(t):
        work = flowing(
            t,
            name,
            published=7.0,
            acked=4.0,
            rejected=1.0,
            ready=int(2 * t),
            arguments={"x-dead-letter-exchange": "dl"},
        )
        bindings = (binding("dl", "dead", bound),) if bound is not None else ()
        return frame(work, queue("dead", consumers=0), exchanges=(exchange("dl", "direct"),), bindings=bindings)

    found = of(RULE, look(film(at, until=70)))

    assert lost == bool(found)
    assert not lost or found[0][0] in {"warning", "critical"}


def chain(queues, *, ttl=5.0, last_ttl=5.0, circle=False, lag=0.0):
    """From second 10 on, a consumer rejects two messages a second into a chain of retry queues; the last has no route.

    Statistics of the lengths are `lag` seconds older than those of the counters.
    """

    def passed(t, late):
        return int(max(0.0, t - 10 - late) * 2)

    def into(name):
        return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}

    def at(t):
        came = stats(publish=passed(t, 0), deliver=passed(t, 0), deliver_get=passed(t, 0))
        made = [queue("work", messages_ready=0, messages_unacked=0, messages=0, arguments=into("retry.1"), stats=came)]
        for place in range(1, queues + 1):
            end = place == queues
            lives = last_ttl if end else ttl
            there = passed(t - lag, (place - 1) * ttl) - passed(t - lag, (place - 1) * ttl + lives)
            route = (into("retry.1") if circle else NO_EXCHANGE) if end else into(f"retry.{place + 1}")
            arguments = {**route, "x-message-ttl": int(1000 * lives)}
            lengths = {"messages_ready": there, "messages_unacked": 0, "messages": there}
            made.append(queue(f"retry.{place}", consumers=0, arguments=arguments, **lengths))
        return frame(*made)

    return at


@pytest.mark.parametrize("lag", [0.0, 4.9])
@pytest.mark.parametrize("queues", [1, 2, 3, 4])
def test_what_is_lost_at_the_end_of_a_chain_of_retry_queues_is_counted(queues, lag):
    """All but the first get dead letters only, which nothing counts as published."""
    finding = one(RULE, look(film(chain(queues, lag=lag), until=120)))

    assert "critical" == finding.severity
    assert 120 * 0.55 <= finding.facts["dropped"] <= 120


@pytest.mark.parametrize("queues", [1, 2, 3])
@pytest.mark.parametrize("lag", [0.0, 4.9])
def test_dead_letters_that_wait_at_the_end_of_a_chain_are_not_lost(queues, lag):
    """They expire in an hour."""
    for until in range(25, 125, 10):
        assert 0 == one(RULE, look(film(chain(queues, last_ttl=3600.0, lag=lag), until=until))).facts["dropped"]


def test_a_circle_of_retry_queues_drops_nothing():
    """Each leads to the next one, and the last to the first."""
    assert [] == of(RULE, look(film(chain(2, circle=True), until=120)))
