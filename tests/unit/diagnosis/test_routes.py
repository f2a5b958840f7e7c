import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings, Exchange, Policy
from diagnosis.routes import dead_letter_targets, dead_letters_to, is_delay, matches, targets
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.pictures import film, queue, stats


def binding(source, destination, key="", kind="queue"):
    """One binding in vhost `/`."""
    return Binding(vhost="/", source=source, destination=destination, destination_type=kind, routing_key=key)


def exchange(name, kind="direct", **fields):
    """One exchange in vhost `/`."""
    return Exchange(vhost="/", name=name, type=kind, **fields)


def seen(*, queues=(), exchanges=(), bindings=(), policies=()):
    """Return a view of a cluster with these objects."""
    listed = bindings if isinstance(bindings, Part) else Bindings(listed=tuple(bindings))
    parts = {"queues": tuple(queues), "exchanges": exchanges, "bindings": listed, "policies": tuple(policies)}
    window = film(lambda _: parts, until=0)
    return View(window, (), window.latest.taken, Thresholds())


def names(found):
    """Return the names of the queues in virtual host `/`; None stays None."""
    return found if found is None else sorted(name for _, name in found)


def test_the_default_exchange_goes_by_the_name_of_the_queue():
    """It reaches nothing if the queue does not exist; with an unknown key the route is unknown."""
    view = seen(queues=[queue("a"), queue("b")])

    assert ["a"] == names(targets(view, "/", "", "a"))
    assert [] == names(targets(view, "/", "", "c"))
    assert [] == names(targets(view, "other", "", "a"))
    assert targets(view, "/", "", None) is None


def test_a_direct_exchange_goes_by_the_key():
    """With an unknown key it reaches all bound queues."""
    view = seen(exchanges=(exchange("x"),), bindings=[binding("x", "a", "1"), binding("x", "b", "2")])

    assert ["a"] == names(targets(view, "/", "x", "1"))
    assert [] == names(targets(view, "/", "x", "3"))
    assert ["a", "b"] == names(targets(view, "/", "x", None))


def test_a_fanout_exchange_reaches_all():
    """Whatever the key."""
    view = seen(exchanges=(exchange("x", "fanout"),), bindings=[binding("x", "a", "1"), binding("x", "b")])

    assert ["a", "b"] == names(targets(view, "/", "x", "z"))


def test_a_topic_exchange_goes_by_patterns():
    """A key without wildcards must match exactly."""
    bound = [binding("x", "all", "#"), binding("x", "eu", "*.eu"), binding("x", "one", "order.eu")]
    view = seen(exchanges=(exchange("x", "topic"),), bindings=bound)

    assert ["all", "eu", "one"] == names(targets(view, "/", "x", "order.eu"))
    assert ["all"] == names(targets(view, "/", "x", "order.us"))


@pytest.mark.parametrize(
    ("pattern", "key", "taken"),
    [
        ("#", "", True),
        ("#", "a.b.c", True),
        ("*", "a", True),
        ("*", "", False),
        ("*", "a.b", False),
        ("a.*.c", "a.b.c", True),
        ("a.#.c", "a.c", True),
        ("a.#.c", "a.b.b.c", True),
        ("a.#.c", "a.b", False),
        ("#.b.#", "a.b.c", True),
        ("a.b", "a.b.c", False),
        ("", "", True),
        ("", "a", False),
        ("a.#", "b", False),
        ("a.b.#", "a", False),
    ],
)
def test_a_star_is_one_word_and_a_hash_any_number(pattern, key, taken):
    """As the documentation of topic exchanges says."""
    assert taken == matches(pattern, key)


@pytest.mark.parametrize("kind", ["headers", "x-consistent-hash"])
def test_routes_that_do_not_go_by_the_key_are_unknown(kind):
    """The route is known only if nothing is bound; with an unknown key, all bound queues may be reached."""
    view = seen(exchanges=(exchange("x", kind), exchange("bare", kind)), bindings=[binding("x", "a")])

    assert targets(view, "/", "x", "1") is None
    assert [] == names(targets(view, "/", "bare", "1"))
    assert ["a"] == names(targets(view, "/", "x", None))


def test_a_delayed_message_exchange_is_what_it_says_that_it_is():
    """Its type is in its arguments."""
    delayed = exchange("x", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    view = seen(exchanges=(delayed,), bindings=[binding("x", "a", "1")])

    assert ["a"] == names(targets(view, "/", "x", "1"))


def test_exchanges_bound_to_exchanges_are_followed():
    """Cycles of bindings are followed too."""
    chain = [binding("x", "y", "1", "exchange"), binding("y", "x", "1", "exchange"), binding("y", "a", "1")]
    view = seen(exchanges=(exchange("x"), exchange("y")), bindings=chain)

    assert ["a"] == names(targets(view, "/", "x", "1"))


def test_an_alternate_exchange_takes_what_no_binding_takes():
    """By an argument or by a policy."""
    spare = exchange("spare", "fanout")
    bound = [binding("x", "a", "1"), binding("spare", "rest")]
    by_argument = seen(exchanges=(exchange("x", arguments={"alternate-exchange": "spare"}), spare), bindings=bound)
    policy = Policy(vhost="/", name="ae", definition={"alternate-exchange": "spare"})
    by_policy = seen(exchanges=(exchange("x", policy="ae"), spare), bindings=bound, policies=[policy])

    for view in (by_argument, by_policy):
        assert ["a"] == names(targets(view, "/", "x", "1"))
        assert ["rest"] == names(targets(view, "/", "x", "2"))


def test_an_exchange_that_is_not_there_reaches_nothing():
    """That is why messages are dropped."""
    assert frozenset() == targets(seen(), "/", "gone", "1")


def test_without_the_list_of_bindings_nothing_is_reported():
    """Only the default exchange has a known route, because it needs no bindings."""
    view = seen(queues=[queue("a")], exchanges=(exchange("x"),), bindings=Part(error="timed out"))

    assert targets(view, "/", "x", "1") is None
    assert ["a"] == names(targets(view, "/", "", "a"))


def test_dead_letter_targets_are_found_by_arguments_policies_and_bindings():
    """Dead letters have their own routing key or that of the message."""
    sources = [
        queue("named", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bin"}),
        queue("bound", effective_policy={"dead-letter-exchange": "dlx"}),
        queue("bin"),
        queue("waste"),
        queue("self", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "self"}),
    ]
    view = seen(queues=sources, exchanges=(exchange("dlx", "topic"),), bindings=[binding("dlx", "waste", "#")])

    assert ["bin", "waste"] == names(dead_letter_targets(view))
    assert ["waste"] == names(dead_letters_to(view, sources[1]))
    assert dead_letters_to(view, sources[2]) is None


def test_what_comes_out_of_a_delay_is_no_waste():
    """The work queue behind a retry is no dead-letter queue; the delay queue is a target of the work queue."""
    work = queue("work", arguments={"x-dead-letter-exchange": "again"})
    retry = {"x-message-ttl": 5000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
    view = seen(
        queues=[work, queue("retry", consumers=0, arguments=retry)],
        exchanges=(exchange("again", "fanout"),),
        bindings=[binding("again", "retry")],
    )

    assert ["retry"] == names(dead_letter_targets(view))


TO_WORK = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
TTL = {**TO_WORK, "x-message-ttl": 5000}
CONSUMED = {"deliver": 9, "ack": 9}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"arguments": TTL}, True),
        ({"arguments": TTL, "stats": stats(publish=90, **CONSUMED)}, False),
        ({"arguments": TTL, "consumers": 1}, False),
        ({"arguments": TTL, "stats": stats(publish=90, get=3, ack=3)}, True),
        ({"arguments": TTL, "stats": stats(publish=90, get=80, ack=80)}, False),
        ({"arguments": TO_WORK, "stats": stats(publish=90)}, True),
        ({"arguments": TO_WORK, "stats": stats(publish=10)}, False),
        ({"arguments": {**TO_WORK, "x-max-length": 10}, "stats": stats(publish=90)}, False),
        ({"arguments": {"x-message-ttl": 5000}, "stats": stats(publish=90)}, False),
    ],
    ids=[
        "settings, nothing was seen", "it was consumed", "it is consumed", "a person looked", "it was polled",
        "messages left by themselves", "nothing left", "a length limit dropped them", "no dead-letter exchange",
    ],
)  # fmt: skip
def test_a_delay_queue_is_known_by_what_left_it_without_a_client(fields, expected):
    """A setting decides only where nothing was seen."""
    waiting = queue("wait", **{"messages_ready": 10, "consumers": 0, **fields})
    window = film(lambda _: {"queues": (waiting, queue("work"))}, until=20)
    view = View(window, (), window.latest.taken, Thresholds())

    assert expected is is_delay(view, waiting)


def test_a_delay_queue_is_known_by_what_arrived_behind_it():
    """Messages that were not published there, and that can only be from it."""

    def known(*others):
        waiting = queue("wait", messages_ready=10, consumers=0, arguments=TO_WORK, stats=stats(publish=10))
        queues = (waiting, queue("work", stats=stats(ack=50, deliver=50)), *others)
        window = film(lambda _: {"queues": queues}, until=20)
        return is_delay(View(window, (), window.latest.taken, Thresholds()), waiting)

    assert known()
    assert not known(queue("other", arguments=TO_WORK))
