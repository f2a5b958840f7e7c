"""Queues whose client came back with a queue of a new name, and queues of one form that lack their consumers."""

import pytest

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings
from diagnosis.queue_families import has_random_part
from tests.unit.diagnosis.pictures import film, full_text, look, queue, stats, text

RULE = "no-consumer"
FANOUT = "port-update_fanout_"
TOKENS = tuple(f"{number * 7919:08x}b91e4d" for number in range(1, 40))


def restarting(t, *, names, every, rate=4.0, steady=0, expires=None):
    """The queues of a client that restarts every so many seconds, with a new name each time, and of steady ones."""
    arguments = {} if expires is None else {"x-expires": expires}
    made = []
    for number in range(int(t // every) + 1):
        here = number == int(t // every)
        age, lived = t - number * every, min(t - number * every, every)
        ready = 0 if here else int(rate * (age - every))
        counters = stats(publish=int(rate * age), deliver=int(rate * lived), ack=int(rate * lived))
        fields = {"consumers": int(here), "messages_ready": ready, "arguments": arguments, "stats": counters}
        made.append(queue(names[number], **fields))
    taken = stats(publish=int(rate * t), deliver=int(rate * t), ack=int(rate * t))
    made += [queue(names[-1 - number], arguments=arguments, stats=taken) for number in range(steady)]
    return {"queues": tuple(made)}


def result(until, **fields):
    """The findings after so many seconds."""
    return look(film(lambda t: restarting(t, **fields), until=until))


def of_rule(verdict):
    """The findings of the rule that are causes, and all of them."""
    return [it for it in verdict.findings if it.rule == RULE], [it for it in flat(verdict.findings) if it.rule == RULE]


@pytest.mark.parametrize(
    ("form", "steady"),
    [(FANOUT + "{}", 2), (FANOUT + "{}", 0), ("worker.{}.events", 1)],
    ids=["agents", "one", "named"],
)
@pytest.mark.parametrize("rate", [0.7, 40.0])
def test_queues_that_a_client_left_behind_are_one_finding(form, steady, rate):
    """It hints at the client's names, and starts nothing."""
    names = [form.format(token) for token in TOKENS]
    causes, everyone = of_rule(result(300, names=names, every=40, rate=rate, steady=steady))

    assert 1 == len(causes)
    assert len(everyone) >= 5
    assert "warning" == causes[0].severity
    assert "probably came back with a queue of a new name" in text(causes[0]).cause
    assert "Start or scale" not in full_text(causes[0])
    assert any(
        "delete_queue" in (step.command or "") and "--if-unused" in step.command for step in text(causes[0]).steps
    )


def test_queues_that_the_broker_will_delete_are_information():
    """Their setting x-expires does it."""
    names = [FANOUT + token for token in TOKENS]
    (cause,), _ = of_rule(result(300, names=names, every=40, expires=1_800_000))

    assert "info" == cause.severity
    assert "the broker deletes it when it has been unused for 30 min" in text(cause).cause


def test_numbers_count_only_where_the_next_queue_came_with_the_restart():
    """Otherwise they may be shards."""
    names = [f"printer-{number}" for number in range(3000, 3100, 7)]
    (cause,), _ = of_rule(result(300, names=names, every=40))

    assert "probably came back with a queue of a new name" in text(cause).cause


def shards(t, *, missing, of=6, rate=6.0, begins=60):
    """Shards of one application; some lose their consumer."""

    def shard(number):
        lost = number in missing and t >= begins
        taken = int(rate * (begins if lost else t))
        counters = stats(publish=int(rate * t), deliver=taken, ack=taken)
        ready = int(rate * t) - taken
        return queue(f"metering.shard-{number}", consumers=int(not lost), messages_ready=ready, stats=counters)

    return {"queues": tuple(shard(number) for number in range(of))}


@pytest.mark.parametrize("missing", [{2}, {0, 1, 4}, {0, 1, 2, 3, 4, 5}])
def test_shards_without_consumers_are_one_finding_that_asks_for_their_application(missing):
    """They are not replaced by the others."""
    causes, everyone = of_rule(look(film(lambda t: shards(t, missing=missing), until=300)))

    assert (1, len(missing)) == (len(causes), len(everyone))
    assert "new name" not in text(causes[0]).cause
    assert "Start or scale the application" in full_text(causes[0])


@pytest.mark.parametrize(
    ("name", "random"),
    [
        ("amq.gen-JzTY20BRgKO-HjmUJj0wLg", True),
        ("reply.6ba7b810-9dad-11d1-80b4-00c04fd430c8", True),
        ("q_fanout_8beb3d4493a2454f92aa81900bbb8b1e", True),
        ("orders-20261128", False),
        ("orders.shard-12", False),
        ("eu-west-1.mail2", False),
        ("orders", False),
    ],
)
def test_a_random_part_is_not_a_number(name, random):
    """Dates and shards are chosen by people."""
    assert random == has_random_part(name)


@pytest.mark.parametrize(
    ("exchanges", "replaced"),
    [(("news", "news"), True), (("news", "prices"), False), ((None, None), False)],
    ids=["same exchange", "other exchange", "no binding"],
)
def test_names_of_the_broker_say_nothing_of_the_application(exchanges, replaced):
    """Only bindings to the same exchange do."""
    names = ("amq.gen-JzTY20BRgKO-HjmUJj0wLg", "amq.gen-h4kTQ9xWbLm-2VdEsRzcAy")
    listed = tuple(
        Binding(vhost="/", source=source, destination=name, destination_type="queue", routing_key="")
        for name, source in zip(names, exchanges, strict=True)
        if source
    )

    def frame(t):
        taken = int(5 * min(t, 20))
        left = stats(publish=int(5 * t), deliver=taken, ack=taken)
        works = stats(publish=int(5 * t), deliver=int(5 * t), ack=int(5 * t))
        return {
            "queues": (
                queue(names[0], consumers=int(t < 20), messages_ready=int(5 * t) - taken, stats=left),
                queue(names[1], stats=works),
            ),
            "bindings": Bindings(listed=listed),
        }

    (cause,), _ = of_rule(look(film(frame, until=220)))

    assert replaced == ("came back with a queue of a new name" in text(cause).cause)
