import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats
from tests.unit.diagnosis.test_engine import troubled

UNTIL = 200


def healthy(name, t, rate, prefetch):
    """Return a healthy queue whose messages are all acknowledged, with its consumer, channel and connection."""
    done = int(rate * t)
    taken = {"deliver": done + 1, "deliver_get": done + 1, "ack": done, "redeliver": 1}
    ready, held = int(rate) % 7, min(1, prefetch)
    route = {"channel_name": f"{name} (1)", "connection_name": name}
    return {
        "queues": (queue(name, messages_ready=ready, messages_unacked=held, stats=stats(publish=done + 1, **taken)),),
        "consumers": (consumer(name, tag=name, prefetch_count=prefetch, **route),),
        "channels": (channel(f"{name} (1)", messages_unacked=held, stats=stats(**taken)),),
        "connections": (connection(name),),
    }


def crowd(t, members):
    """Return several healthy queues."""
    families = {"queues": (), "consumers": (), "channels": (), "connections": ()}
    for number, (rate, prefetch) in enumerate(members):
        for family, objects in healthy(f"healthy-{number}", t, rate, prefetch).items():
            families[family] = (*families[family], *objects)
    return families


def together(t, members, seed):
    """Return the cluster with faults plus healthy queues, with every list in some order."""
    picture, order = troubled(t), random.Random(seed * 1000 + t)
    for family, objects in crowd(t, members).items():
        mixed = [*picture.get(family, ()), *objects]
        order.shuffle(mixed)
        picture[family] = tuple(mixed)
    return picture


ALONE = look(film(troubled, until=UNTIL))
MEMBERS = st.lists(st.tuples(st.sampled_from([0.2, 1.0, 9.5, 800.0]), st.integers(2, 300)), max_size=5)


@settings(max_examples=15, deadline=None)
@given(members=MEMBERS, seed=st.integers(0, 1000))
def test_neither_order_nor_healthy_neighbours_change_the_findings(members, seed):
    """Healthy objects and the order of lists do not change the result."""
    verdict = look(film(lambda t: together(t, members, seed), until=UNTIL))

    assert ALONE.findings == verdict.findings
    assert ALONE.inconclusive == verdict.inconclusive


@settings(max_examples=15, deadline=None)
@given(members=MEMBERS, until=st.sampled_from([5, 20, 60, 400]))
def test_healthy_queues_alone_have_no_findings(members, until):
    """Neither the rate nor the length of the window matters."""
    verdict = look(film(lambda t: crowd(t, members), until=until))

    assert () == verdict.findings
