import pytest

from ackscope.topology import Exchange, Link
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import film, look, queue, stats, text

RULE = "link-doubled"
THERE, HERE = "amqp://10.0.9.1:5672", "amqp://10.0.0.1"


def shovel(name, **fields):
    """A shovel from an exchange of another cluster to a queue here."""
    ends = {"source": THERE, "source_exchange": "orders", "destination": HERE, "target_queue": "copies"}
    own = {"type": "dynamic", "state": "running", **ends, **fields}
    return Link(kind="shovel", name=name, vhost="/", node=ONE, **own)


def upstream(name, **fields):
    """A federation link of an exchange."""
    ends = {"source": THERE, "source_exchange": "orders", "local": "orders", "upstream": name}
    own = {"type": "exchange", "state": "running", **ends, **fields}
    return Link(kind="federation", name=name, vhost="/", node=ONE, **own)


def seen(*links, rate=5.0, until=60):
    """The result while the target gets so many messages a second."""
    count = lambda t: stats(publish=int(rate * t), ack=int(rate * t), deliver=int(rate * t))  # noqa: E731
    window = film(
        lambda t: {
            "links": links,
            "queues": (queue("copies", stats=count(t)),),
            "exchanges": (Exchange(vhost="/", name="orders", type="topic", stats=stats(publish_in=int(rate * t))),),
        },
        until=until,
    )
    return look(window)


@pytest.mark.parametrize("names", [("a", "b"), ("eu-to-us", "migration")])
def test_two_shovels_from_one_exchange_double_every_message(names):
    """Each has a queue of its own there."""
    verdict = seen(*map(shovel, names))
    finding = finding_of(verdict, RULE)

    assert [("warning", "link", min(names))] == reported(verdict, RULE)
    assert (2, True) == (finding.facts["copies"], finding.facts["flows"])
    assert "every message arrives twice" in text(finding).summary


def test_a_shovel_and_a_federation_link_double_too():
    """The addresses are written differently, and mean the same."""
    home = {"source": "amqp://10.0.0.1:5672/eu", "destination": "amqp://10.0.0.1", "target_queue": None}
    links = (shovel("a", target_exchange="orders", **home), upstream("b", source="amqp://10.0.0.1/eu"))

    assert [("warning", "link", "b")] == reported(seen(*links), RULE)


def test_while_nothing_moves_it_is_information():
    """It will double."""
    assert [("info", "link", "a")] == reported(seen(shovel("a"), shovel("b"), rate=0.0), RULE)


@pytest.mark.parametrize("fields", [{}, {"type": "queue", "source_exchange": None, "source_queue": "orders"}])
def test_two_federation_links_to_one_upstream_share_its_messages(fields):
    """They come once."""
    verdict = seen(upstream("a", **fields), upstream("b", **fields))

    assert [("info", "link", "a")] == reported(verdict, RULE)
    assert 1 == finding_of(verdict, RULE).facts["copies"]


@pytest.mark.parametrize(
    "other",
    [
        shovel("b", source_exchange="returns"),
        shovel("b", source="amqp://10.0.9.2:5672"),
        shovel("b", source="amqp://10.0.9.1:5672/other"),
        shovel("b", source_key="eu.#"),
        shovel("b", target_queue="others"),
        shovel("b", destination="amqp://10.0.0.1/other"),
        shovel("b", state="terminated"),
        shovel("b", source_exchange=None, source_queue="outbox"),
        upstream("b", local="incoming"),
    ],
    ids=["exchange", "host", "vhost", "key", "queue", "vhost there", "down", "from a queue", "federation elsewhere"],
)
def test_other_links_do_not_double(other):
    """Each differs in one end."""
    assert [] == reported(seen(shovel("a"), other), RULE)


def test_two_shovels_from_one_queue_share_its_messages():
    """That may be meant."""
    ends = {"source_exchange": None, "source_queue": "outbox"}

    assert [] == reported(seen(shovel("a", **ends), shovel("b", **ends)), RULE)
