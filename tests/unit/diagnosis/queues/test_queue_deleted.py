import pytest

from ackscope.findings import flat
from ackscope.snapshot import Node, Part
from ackscope.topology import VHost
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import NODE, film, full_text, look, moment, queue, snapshot, stats, text
from tests.unit.diagnosis.queues import films
from tests.unit.diagnosis.queues.films import binding, exchange, of, one

RULE = "queue-deleted"


def frame(t, *queues, uptime=86_400.0, **parts):
    """The parts of a snapshot of a node that has run for a day."""
    return {**films.frame(*queues, **parts), "nodes": (Node(name=NODE, running=True, uptime_seconds=uptime + t),)}


def held(name="work", *, t=0.0, messages=200, acked=0.0, **fields):
    """A queue with a backlog; its consumers acknowledge this many messages per second."""
    counters = stats(publish=int(1000 + acked * t), ack=int(800 + acked * t), deliver=int(800 + acked * t))
    return queue(name, messages_ready=messages, stats=counters, **fields)


def shot(until=60, *, gone=(30,), back=None, fresh=None, published=0, uptime=86_400.0, **fields):
    """The result after this many seconds; the queue is away from each of `gone` for 10 s and back empty if `back`."""

    def at(t):
        started = [start for start in gone if t >= start]
        if not started:
            return frame(t, held(t=t, **fields), queue("orders"), uptime=uptime)
        if not back or t < started[-1] + back:
            return frame(t, queue("orders"), uptime=uptime)
        again = held(t=t - started[-1] - back, **{"messages": fresh or 0, **fields})
        counters = stats(publish=published + int(10 * (t - started[-1] - back)), deliver=0, ack=0)
        return frame(t, queue("work", **{**again_fields(again), "stats": counters}), queue("orders"), uptime=uptime)

    return look(film(at, until=until))


def again_fields(item):
    """The settings of a queue, for the one that is declared again."""
    return {
        "durable": item.durable,
        "auto_delete": item.auto_delete,
        "exclusive": item.exclusive,
        "messages_ready": item.messages_ready,
    }


def test_a_lasting_queue_that_is_deleted_with_messages_is_a_warning():
    """The number is that of the last reading."""
    assert [] == of(RULE, shot(25))
    assert [("warning", "work")] == of(RULE, shot(40))
    assert (200, 1, False) == tuple(one(RULE, shot(40)).facts[key] for key in ("lost", "times", "again"))


def test_one_reading_without_the_queue_proves_nothing():
    """The list may be that of a node that has just started."""
    assert [] == of(RULE, shot(30))


def test_it_is_reported_while_readings_of_the_queue_are_held():
    """Nothing else remembers it."""
    assert [("warning", "work")] == of(RULE, shot(300))
    assert [] == of(RULE, shot(1000))


def test_a_queue_that_is_declared_again_is_seen_by_its_counters():
    """The new queue of that name begins to count at 0."""
    assert [("warning", "work")] == of(RULE, shot(60, back=10))
    assert (200, True) == tuple(one(RULE, shot(60, back=10)).facts[key] for key in ("lost", "again"))


def test_what_the_new_queue_has_may_be_what_the_old_one_had():
    """Counters that begin again with the same messages are no loss: statistics were reset, or a leader moved."""
    assert [] == of(RULE, shot(60, back=10, fresh=200))


def test_an_auto_delete_queue_that_goes_once_is_information_and_again_a_warning():
    """A deployment of its consumer deletes it once; a consumer that reconnects deletes it each time."""
    once = shot(60, back=10, auto_delete=True, durable=False)
    assert [("info", "work")] == of(RULE, once)
    more = shot(100, gone=(30, 70), back=10, fresh=90, published=90, auto_delete=True, durable=False)
    assert [("warning", "work")] == of(RULE, more)
    assert 2 == one(RULE, more).facts["times"]


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": 0},
        {"messages": 3},
        {"acked": 20.0},
        {"exclusive": True, "durable": False},
        {"messages": 200, "arguments": {"x-expires": 20_000}, "consumers": 0},
    ],
    ids=["empty", "few messages", "drained", "a queue for replies", "expired"],
)
def test_these_deletions_lose_nothing_or_have_another_name(fields):
    """A consumer of 20 messages/s may have settled 200 within the interval and the delay of the counters."""
    assert [] == of(RULE, shot(60, **fields))


def test_a_restart_of_a_node_is_no_deletion():
    """Its queues are not listed for some seconds, and their counters begin again."""
    assert [] == of(RULE, shot(60, uptime=-28.0))
    assert [] == of(RULE, shot(60, back=10, uptime=-28.0))


def test_many_deleted_queues_of_one_vhost_are_one_finding():
    """Somebody cleaned up, or deleted the virtual host."""

    def at(t):
        return frame(t, *([held(f"work.{n}") for n in range(8)] if t < 30 else []), queue("orders"))

    result = look(film(at, until=60))
    assert [("warning", "/")] == of(RULE, result)
    assert (8, 1600, False) == tuple(one(RULE, result).facts[key] for key in ("queue_count", "lost", "all_queues"))


def test_it_explains_the_exchange_that_drops_messages_since():
    """One cause: the queue is gone, so its exchange has no route."""

    def at(t):
        here = t < 30
        routed = int(20 * min(t, 30))
        events = exchange("events", stats=stats(publish_in=int(20 * t), publish_out=routed))
        return frame(
            t,
            *([held()] if here else []),
            queue("orders"),
            exchanges=[events],
            bindings=[binding("events", "work")] if here else [],
        )

    result = look(film(at, until=120))
    assert [("warning", "work")] == of(RULE, result)
    others = {each.rule for each in flat(result.findings)} - {RULE}
    assert {each.rule for each in result.findings}.isdisjoint(others)


def test_a_queue_that_was_drained_and_then_deleted_lost_nothing():
    """The last reading of a queue that is emptied at 20/s may be 12 s old, and 5 s passed until it was missed."""

    def at(t):
        drained_by = int(20 * max(0.0, t - 19))
        if t >= 30:
            return frame(t, queue("orders"))
        drained = stats(publish=400, deliver_get=drained_by, get=drained_by, ack=drained_by)
        return frame(t, queue("batch.1", messages_ready=400 - drained_by, stats=drained), queue("orders"))

    assert [] == of(RULE, look(film(at, until=60)))


@pytest.mark.parametrize(("taken", "lost"), [(280, []), (0, [("warning", "batch.1")])])
def test_one_reading_of_a_queue_tells_no_pace(taken, lost):
    """Older readings are further apart, so one is left of a queue that was there for half a minute."""

    def at(t):
        counters = stats(publish=400, deliver_get=taken, get=taken, ack=taken)
        once = (queue("batch.1", messages_ready=400 - taken, stats=counters),) if t == 15 else ()
        return frame(t, *once, queue("orders"))

    assert lost == of(RULE, look(film(at, until=60)))


def without_vhost(sizes, *, until=60, read=5, left=(), listed_until=30.0, name="billing"):
    """A virtual host that goes at second 30 with queues of these sizes; the list of all is read every `read` s."""

    def at(t):
        here = [held(f"q.{n}", messages=size, vhost=name) for n, size in enumerate(sizes)] if t < 30 else []
        rest = [held(each, t=t, vhost=name) for each in left]
        known = ("/", name) if t - t % read < listed_until else ("/",)
        vhosts = Part(value=tuple(map(vhost_of, known)), at=moment(t - t % read), seconds=0.1)
        return {**frame(t, *here, *rest, queue("orders")), "vhosts": vhosts}

    return look(film(at, until=until))


@pytest.mark.parametrize(("sizes", "lost"), [((70,), 70), ((410, 0, 35), 445), ((50,) * 9, 450)])
def test_a_virtual_host_that_is_deleted_with_its_queues_is_one_finding(sizes, lost):
    """Empty queues count as queues. No step runs a command on what does not exist any more."""
    result = without_vhost(sizes)
    finding = one(RULE, result)

    assert ("warning", "vhost", "billing") == (finding.severity.value, finding.subject.kind, finding.subject.name)
    assert (len(sizes), lost, True) == tuple(finding.facts[key] for key in ("queue_count", "lost", "vhost_deleted"))
    assert text(finding).summary.startswith(f"Vhost 'billing' was deleted with {len(sizes)} queue")
    assert not any("-p billing" in (step.command or "") for step in text(finding).steps)
    assert "import_definitions" in full_text(finding)


@pytest.mark.parametrize(
    ("fields", "subjects"),
    [
        ({"left": ("audit",)}, ["q.0", "q.1"]),
        ({"listed_until": 1e9}, ["q.0", "q.1"]),
        ({"sizes": (0, 0)}, []),
    ],
    ids=["a queue is left", "the vhost is still listed", "nothing was in them"],
)
def test_a_virtual_host_that_exists_was_not_deleted(fields, subjects):
    """Somebody deleted its queues, and its permissions can be listed."""
    result = without_vhost(**{"sizes": (60, 90), **fields})

    assert subjects == [name for _, name in of(RULE, result)]
    for finding in (each for each in flat(result.findings) if each.rule == RULE):
        assert "list_permissions -p billing" in full_text(finding)


def test_until_the_list_of_virtual_hosts_is_read_again_nothing_is_said_of_it():
    """An idle broker is asked for it once a minute; until then, one finding says that no queue is left."""
    before, after = (one(RULE, without_vhost((60, 90), until=until, read=60)) for until in (55, 65))

    assert (None, False) == (before.facts["vhost_exists"], before.facts["vhost_deleted"])
    assert "has no queue any more" in text(before).summary
    assert "-p billing" not in full_text(before)
    assert (before.subject, True) == (after.subject, after.facts["vhost_deleted"])


def test_a_queue_that_was_deleted_minutes_before_its_virtual_host_is_another_event():
    """The virtual host had another queue until then."""

    def at(t):
        queues = [held("late", vhost="billing", messages=0)] if t < 200 else []
        vhosts = ("/", "billing") if t < 200 else ("/",)
        queues += [held("early", vhost="billing", messages=77)] if t < 30 else []
        return frame(t, *queues, queue("orders")) | {"vhosts": tuple(map(vhost_of, vhosts))}

    finding = one(RULE, look(film(at, until=260)))

    assert ("early", False) == (finding.subject.name, finding.facts["vhost_exists"])
    assert "-p billing" not in full_text(finding)


def vhost_of(name):
    """A virtual host."""
    return VHost(name=name)


def growing_until(end, rate, *, acked=0.0, back=None, name="inbox"):
    """A queue that fills until it is deleted; `back` s later, an empty one of its name is declared."""

    def at(t):
        if t < end:
            counters = stats(publish=int((rate + acked) * t), ack=int(acked * t), deliver=int(acked * t))
            return frame(t, queue(name, messages_ready=int(rate * t), stats=counters), queue("orders"))
        again = back is not None and t >= end + back
        return frame(t, *([queue(name, stats=stats(publish=0))] if again else []), queue("orders"))

    return at


@pytest.mark.parametrize(
    "fields",
    [{"rate": 9.0}, {"rate": 2.5}, {"rate": 6.0, "acked": 4.0}, {"rate": 7.0, "back": 12}, {"rate": 7.0, "back": 0}],
    ids=["fast", "slow", "with a consumer", "declared again", "declared again at once"],
)
def test_the_number_of_one_deletion_stays_the_same_while_history_thins(fields):
    """It is that of the last reading of the queue, and that reading is kept."""
    window, numbers = Window.empty("shop"), set()
    at = growing_until(150, **fields)
    for t in range(0, 600, 5):
        window = window.add(snapshot(t, **at(t)))
        if t >= 175 and t % 20 == 15:
            finding = one(RULE, look(window))
            numbers.add((finding.facts["lost"], finding.since))

    assert 1 == len(numbers)
    ((lost, _),) = numbers
    assert 0.8 * fields["rate"] * 145 - 10 * fields.get("acked", 0) - 80 * bool(fields.get("acked")) < lost
    assert lost <= fields["rate"] * 145


def test_a_deletion_stays_known_although_its_queue_is_in_no_snapshot_any_more():
    """A queue that lived for half a minute falls between two readings of minutes ago."""

    def at(t):
        short = [queue("batch", messages_ready=220, stats=stats(publish=220))] if 100 <= t < 130 else []
        return frame(t, *short, queue("orders"))

    assert [220] * 4 == [one(RULE, look(film(at, until=until))).facts["lost"] for until in (140, 300, 450, 600)]


def visited(t, *, stays, away, rate, prefetch):
    """An auto-delete queue whose consumer acknowledges nothing, comes again and again; its counters go on."""
    cycle, age = divmod(t, stays + away)
    published = int(rate * (stays * cycle + min(age, stays)))
    delivered = int(prefetch * (cycle + 1))
    if age >= stays:
        return ()
    inside = int(rate * age)
    unacked = min(inside, prefetch)
    counters = stats(publish=published, deliver=delivered, deliver_get=delivered, ack=0, deliver_no_ack=0)
    lengths = {"messages_ready": inside - unacked, "messages_unacked": unacked}
    return (queue("feed", consumers=1, auto_delete=True, stats=counters, **lengths),)


@pytest.mark.parametrize(
    ("stays", "away", "rate", "prefetch"),
    [(16, 3, 20.0, 1), (35, 7, 4.0, 10), (22, 2, 9.0, 3)],
    ids=["often", "with a pause", "hardly away"],
)
@pytest.mark.parametrize("until", [90, 170])
def test_counters_that_belong_to_a_name_go_on(stays, away, rate, prefetch, until):
    """As those of the Prometheus endpoint. A deletion is no purge, whether a reading was without the queue or not."""

    def at(t):
        feed = visited(t, stays=stays, away=away, rate=rate, prefetch=prefetch)
        return frame(t, queue("orders"), *feed)

    verdict = look(film(at, until=until))

    assert [] == of("queue-purged", verdict)
    if away > 5:
        assert ["feed"] == [name for _, name in of(RULE, verdict)]
