"""Two exchanges of a real broker lose messages at once, at the same rate, and `ackscope diagnose` names whose."""

import threading
import time
from contextlib import contextmanager

import pika
import pytest

from ackscope.findings import flat
from diagnosis.brief import diagnose_briefly
from exporter.commands.diagnose import two_looks
from exporter.commands.observer import observe
from lab.cluster import start_lab

pytestmark = pytest.mark.integration

RATE, AHEAD = 20.0, 900


@contextmanager
def publishing(node, client, exchange, *, at_once=0):
    """A client that publishes to an exchange without bindings, 20 messages a second, and some at the beginning."""
    parameters = pika.URLParameters(node.amqp)
    parameters.client_properties = {"connection_name": client}
    ending = threading.Event()

    def publish():
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.exchange_declare(exchange, "fanout")
            for _ in range(at_once):
                channel.basic_publish(exchange, "k", b"x")
            due = time.monotonic()
            while not ending.is_set():
                channel.basic_publish(exchange, "k", b"x")
                due += 1 / RATE
                connection.process_data_events(time_limit=max(0.0, due - time.monotonic()))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


@pytest.mark.parametrize("broker", ["3.10", "4.3"])
def test_each_exchange_that_loses_messages_names_its_own_publisher(broker):
    """Their rates are the same, so nothing else tells them apart."""
    with start_lab(broker) as lab:
        node = lab.nodes[0]
        with (
            publishing(node, "heron", "arrivals", at_once=AHEAD),
            publishing(node, "egret", "departures"),
            observe(node.management, None, [node.prometheus]) as look,
        ):
            time.sleep(8)
            two_looks(look, 15)
            verdict = diagnose_briefly(look.window, (), look.clock.now())

    found = {
        each.subject.name: (each.facts["clients"], round(each.facts["lost_rate"] / RATE, 1))
        for each in flat(verdict.findings)
        if each.rule == "pub-unroutable-dropped"
    }
    assert {"arrivals": (["heron"], 1.0), "departures": (["egret"], 1.0)} == found
    sources = {item.source for each in flat(verdict.findings) for item in each.evidence if item.key == "exchange_lost"}
    assert any("channel_messages_unroutable_dropped_total" in str(each) for each in sources)
