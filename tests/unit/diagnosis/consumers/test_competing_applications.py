import pytest

from diagnosis.text import Cluster, render
from tests.unit.diagnosis.consumers.results import ever, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats

JAVA, PIKA = ("shop", "RabbitMQ"), ("shop", "Pika Python Client Library")


def shared(*applications, each=(100, 100), of=None, served=1):
    """A queue whose consumers belong to these applications, and what each has been sent."""

    def frame(t):
        names = [f"10.0.0.{number}:5000 -> 10.0.0.1:5672" for number in range(len(applications))]
        sent = stats(publish=sum(each) + int(t), deliver=sum(each) + int(t), ack=sum(each) + int(t))
        return {
            "queues": (queue(consumers=len(names), stats=sent, **(of or {})),),
            "consumers": tuple(
                consumer(queue_name, tag=name, channel_name=f"{name} (1)", connection_name=name)
                for name in names
                for queue_name in ("orders", "bills")[:served]
            ),
            "channels": tuple(
                channel(f"{name} (1)", stats=stats(deliver=sent, ack=sent))
                for name, sent in zip(names, each, strict=True)
            ),
            "connections": tuple(
                connection(name, client_name=f"app-{number}", user=user, client_product=product)
                for number, (name, (user, product)) in enumerate(zip(names, applications, strict=True))
            ),
        }

    return frame


@pytest.mark.parametrize(
    ("applications", "each", "said"),
    [
        ((JAVA, PIKA), (300, 100), "'app-0' (RabbitMQ) 75 %, 'app-1' (Pika Python Client Library) 25 %"),
        ((JAVA, ("billing", "RabbitMQ")), (100, 100), "'app-1' (user 'billing') 50 %, 'app-0' (user 'shop') 50 %"),
    ],
    ids=["libraries", "users"],
)
def test_each_application_is_named_with_its_share(applications, each, said):
    """It may be meant, so it is information."""
    finding = only(look(film(shared(*applications, each=each), until=15)))

    assert ("competing-applications", "info", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert said in render(finding, Cluster((4, 0))).summary
    assert 2 == len(finding.involved.connections)


@pytest.mark.parametrize(
    "frame",
    [
        shared(JAVA, JAVA),
        shared(JAVA, PIKA, each=(1000, 10)),
        shared(JAVA, (None, "RabbitMQ")),
        shared(JAVA, PIKA, of={"type": "stream"}),
        shared(JAVA, PIKA, of={"arguments": {"x-single-active-consumer": True}}),
        shared(JAVA, PIKA, served=2),
    ],
    ids=["instances", "hardly takes any", "unknown", "stream", "single active", "several queues"],
)
def test_no_application_misses_what_it_should_see(frame):
    """Or nobody can tell."""
    assert "competing-applications" not in ever([look(film(frame, until=15))])
