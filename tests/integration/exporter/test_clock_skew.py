"""A host whose clock is four minutes ahead of a real broker's: a job of seconds is not taken for one of minutes."""

import subprocess
import sys
import threading
import time

import orjson
import pika
import pytest

pytestmark = pytest.mark.integration

AHEAD = 240.0
QUEUE = "reports"
# Durations are measured with the monotonic clock, which this does not change.
DIAGNOSE = """
import runpy, sys, time
real = time.time
time.time = lambda: real() + {ahead}
sys.argv[0] = "ackscope"
runpy.run_module("ackscope", run_name="__main__")
"""


@pytest.fixture
def working(lab_43):
    """A consumer with prefetch 1 that works on one message, while another is ready."""
    connection = pika.BlockingConnection(pika.URLParameters(lab_43.nodes[0].amqp))
    channel, over = connection.channel(), threading.Event()
    channel.queue_declare(QUEUE)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(QUEUE, lambda *_: None)
    for _ in range(2):
        channel.basic_publish("", QUEUE, b"job")

    def serve():
        while not over.is_set():
            connection.process_data_events(0.2)

    thread = threading.Thread(target=serve)
    thread.start()
    yield lab_43.nodes[0]
    over.set()
    thread.join()
    channel.queue_delete(QUEUE)
    connection.close()


def test_a_clock_that_differs_makes_no_standstill(working):
    """The difference is reported; how long the channel has been idle is right."""
    # The broker reports a channel as idle after its statistics were refreshed.
    time.sleep(12)
    words = ["diagnose", "--management", working.management, "--json"]
    done = subprocess.run(
        [sys.executable, "-c", DIAGNOSE.format(ahead=AHEAD), *words], capture_output=True, check=False, timeout=90
    )
    (cluster,) = orjson.loads(done.stdout)["clusters"]
    found = {finding["rule"]: finding for finding in cluster["findings"]}

    assert 0 == done.returncode, found
    assert "info" == found["clock-skew"]["severity"]
    assert abs(found["clock-skew"]["facts"]["seconds"] - AHEAD) < 3
    assert not [name for name, finding in found.items() if finding["severity"] != "info"]
