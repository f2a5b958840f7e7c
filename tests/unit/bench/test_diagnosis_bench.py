import pytest

from bench.diagnosis import age
from bench.diagnosis.comparison import page
from bench.diagnosis.faults import batches, groups
from bench.diagnosis.figures import goals, rows_table
from bench.diagnosis.scene import Held, flat
from bench.diagnosis.stamped import TYPES, StampedQueue, stamped_queues
from lab.faults import FAULTS


def row(fault="stuck-consumer", **fields):
    """Return a fault that was named after 12 s, and by a single diagnosis."""
    usual = {
        "broker": "4.3.6",
        "nodes": 1,
        "seconds": 12.0,
        "severity": "info",
        "under": "",
        "once": True,
        "others": [],
        "cleared": 24.0,
        "failed": "",
        "peers": {},
        "named_by": [],
        "peers_wait": {},
    }
    return {"fault": fault, **usual, **fields}


def test_what_was_not_named_counts_and_what_could_not_be_injected_does_not():
    """A fault without effect is neither a success nor a failure of the diagnosis."""
    rows = [row(), row(seconds=None, once=False), row(failed="no such plugin", seconds=None, once=None)]
    missed, middle, worst, once = goals(rows)

    assert (0.5, 12.0, 12.0, 0.5) == (missed.seen, middle.seen, worst.seen, once.seen)
    assert not missed.met


def test_where_a_version_does_not_tell_enough_a_reason_is_expected_and_no_name():
    """Silence is a failure; a reason that names the fault's queue or client is none."""
    unnamed = {"seconds": None, "once": None, "severity": ""}
    rows = [
        row(clients=["shop"]),
        row(open=True, unsure="no sessions", **unnamed),
        row(open=True, unsure="", **unnamed),
    ]
    missed, *_, silent = goals(rows)
    text = "\n".join(rows_table(rows, []))

    assert (0.0, 1) == (missed.seen, silent.seen)
    assert not silent.met
    assert "open, stuck-consumer (4.3.6): no sessions" in text
    assert "clients named, stuck-consumer (4.3.6): shop" in text

    held = Held(FAULTS["amqp10-full-queue"], {"kind": "queue", "vhost": "/", "name": "fault.amqp10-full-queue"}, 0.0)
    gap = {
        "rule": "pub-nacked-overflow",
        "reason": "sessions_end_at_once",
        "because": "1 client uses AMQP 1.0: fault-amqp10-full-queue.",
    }
    assert held.is_left_open_by(gap)
    assert not held.is_left_open_by({**gap, "because": "1 client uses AMQP 1.0: shop."})
    assert not held.is_left_open_by({**gap, "rule": "pub-no-confirms"})


def test_the_table_fits_a_terminal_and_tells_what_was_strange():
    """80 columns for the longest names."""
    rows = [row(name, broker="3.10.8", nodes=3, severity="critical", others=["warning x queue y"]) for name in FAULTS]
    text = rows_table(rows, [])

    assert max(len(line) for line in text[: len(rows) + 2]) <= 80
    assert any(line.startswith("also said, stuck-consumer (3.10.8): warning x") for line in text)


def reported(rule="stuck-consumer", kind="queue", name="orders", vhost="/", **fields):
    """Return a finding as the API reports it."""
    return {"rule": rule, "subject": {"kind": kind, "vhost": vhost, "name": name, "node": None}, **fields}


@pytest.mark.parametrize(
    ("finding", "named"),
    [
        (reported(), True),
        (reported(vhost=None), True),
        (reported(rule="slow-consumer"), False),
        (reported(name="stock"), False),
        (reported(kind="connection"), False),
        (reported(vhost="shop"), False),
    ],
)
def test_a_fault_is_named_by_the_right_rule_about_the_right_thing(finding, named):
    """Another queue, or another rule, is no success."""
    held = Held(FAULTS["stuck-consumer"], {"kind": "queue", "vhost": "/", "name": "orders"}, 0.0)

    assert named == held.is_named_by(finding)


@pytest.mark.parametrize(
    ("clients", "unknown", "named"),
    [([], True, True), ([], False, False), (["fault-queue-away-publisher"], False, True), (["shop"], False, False)],
)
def test_a_client_is_needed_unless_the_broker_lists_none(clients, unknown, named):
    """A finding that says that clients are unknown names the fault by its subject, or by the process of a channel."""
    held = Held(FAULTS["queue-away"], {"kind": "exchange", "vhost": "/", "name": "in"}, 0.0)
    rule, facts = "pub-unroutable-dropped", {"clients_unknown": unknown}
    finding = reported(rule, "exchange", "in", involved={"clients": clients}, facts=facts)

    assert named == held.is_named_by(finding)


@pytest.mark.parametrize(("listed", "kind"), [(True, "connection"), (False, "cluster")])
def test_a_fault_of_a_client_is_named_by_the_cluster_where_no_clients_are_listed(listed, kind):
    """Only there, and only by its own rule."""
    held = Held(FAULTS["channel-leak"], {"kind": "connection", "vhost": "/", "name": ""}, 0.0, clients_listed=listed)
    rules = ("channel-leak", "connection-leak")
    named = [
        (it, rule) for it in ("connection", "cluster") for rule in rules if held.is_named_by(reported(rule, kind=it))
    ]

    assert (kind, "channel-leak") in named
    assert ("cluster", "channel-leak") in named or listed
    assert ("cluster", "connection-leak") not in named


def test_consequences_are_findings_with_their_cause():
    """This includes consequences of consequences."""
    deep = reported("c", consequences=[])
    cause = reported("a", consequences=[reported("b", consequences=[deep])])

    assert [("a", None), ("b", "a"), ("c", "a")] == [(it["rule"], up and up["rule"]) for it, up in flat([cause])]


def test_every_fault_is_tried_once_and_those_that_disturb_all_are_alone():
    """All other faults share a broker."""
    grouped = list(groups(list(FAULTS.values())))
    tried = [spec for group in grouped for batch in batches(group, 5) for spec in batch]
    alone = [len(batch) for group in grouped for batch in batches(group, 5) if batch[0].alone or batch[0].wrecks]

    assert sorted(FAULTS) == sorted(spec.name for spec in tried)
    assert set(alone) <= {1}
    assert all(sum(spec.apart for spec in batch) <= 1 for group in grouped for batch in batches(group, 5))


def test_the_comparison_counts_in_favour_of_others_and_says_so():
    """A condition that holds counts as an alert; a name that states the cause is bold."""
    rows = [
        row(
            "no-consumer",
            peers={"adinhodovic-mixin": ["NoConsumer"]},
            named_by=["adinhodovic-mixin"],
            peers_wait={"adinhodovic-mixin": 120},
        ),
        row("stuck-consumer", seconds=None),
    ]
    text = page(rows)

    assert "| **ackscope** | 1 of 2 | 1 of 2 | 12 s total |" in text
    assert "| adinhodovic/rabbitmq-mixin | 1 of 2 | 1 of 2 | 2 min |" in text
    page_of_rule = "[no-consumer](../diagnosis/catalogue/no-consumer.md)"
    assert f"| {page_of_rule} | 4.3.6, one node | **12 s**, info | - | - | - | **NoConsumer** |" in text
    assert "not named" in text


def stamped():
    """Return a queue with a message a second, each settled 10 s later until second 60."""
    published = [float(second) for second in range(100)]
    settled = [second + 10 for second in published[:50]]
    return StampedQueue("classic", 1.0, 0.0, published, published[:50], settled)


def test_the_true_age_is_that_of_the_oldest_message_that_was_not_settled():
    """And the sojourn time that of what was settled in a period."""
    queue = stamped()

    assert (9.5, 30.0, None) == (queue.true_age(30.5), queue.true_age(80.0), queue.true_age(-1.0))
    assert [10.0] * 5 == queue.sojourns(20.0, 25.0)


def test_bounds_are_compared_with_the_true_age():
    """An upper bound that is unknown may hold, and is not narrow."""
    readings = [
        age.AgeReading(30.5, {"stamped.classic.1": {"lower": 5.0, "upper": 12.0}}, {}),
        age.AgeReading(31.5, {"stamped.classic.1": {"lower": 5.0}}, {}),
        age.AgeReading(32.5, {"stamped.classic.1": {"lower": 9.9, "upper": 12.0}}, {}),
        age.AgeReading(33.5, {}, {("stamped.classic.1", 0.5): {"lower": 9.0, "upper": 10.0}}),
    ]
    found = age._compared("4.3.6", stamped(), readings)

    assert (3, 2, 2) == (found["readings"], found["inside"], found["narrow"])
    assert [{"true": 9.5, "lower": 9.9, "upper": 12.0}] == found["missed"]
    assert (1, 1) == (found["sojourns"], found["sojourns_inside"])


def test_the_table_of_ages_fits_a_terminal():
    """The longest names, and a queue without a reading."""
    results = [age._compared("3.10.8", queue, []) for queue in stamped_queues(list(TYPES), [1, 500])]
    results.append(age._compared("3.10.8", stamped(), [age.AgeReading(30.5, {"stamped.classic.1": {"lower": 9}}, {})]))
    document = {"results": results, "goals": [goal.as_dict() for goal in age._goals(results)]}

    assert all(len(line) <= 80 for line in age.lines(document)[:-2])
    assert [True, False] == [goal.met for goal in age._goals(results)]


def test_consumers_grow_drain_and_stand_still():
    """In turns, and shifted from queue to queue."""
    one, other = stamped_queues(["classic"], [1, 20])

    assert {0.0, 0.6, 0.8, 1.0, 1.4, 1.5} == {one.speed(second) for second in range(230)}
    assert one.speed(0) == one.speed(230)
    assert [one.speed(second + other.shift) for second in range(50)] == [other.speed(second) for second in range(50)]
