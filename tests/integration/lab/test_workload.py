import subprocess
import sys

import pytest

from lab.cluster import start_lab
from lab.workload.__main__ import JOBS

pytestmark = pytest.mark.integration

CONSUMED = ("shop.orders", "shop.payments", "shop.emails", "shop.audit", "shop.search")
MADE = (*CONSUMED, "shop.emails.retry", "shop.orders.dead")


@pytest.fixture
def shop(lab, channel_of):
    """The shop on a shared broker, new before and gone afterwards."""
    # What another test's shop left unacknowledged would come to this one as redelivered.
    _clear(channel_of(lab.nodes[0]))
    command = [sys.executable, "-m", "lab.workload", "--amqp", lab.nodes[0].amqp]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process
        process.stdin.close()
    _clear(channel_of(lab.nodes[0]))


def _clear(channel):
    """Remove everything that the shop declares; what is not there is no error."""
    for queue in MADE:
        channel.queue_delete(queue)
    for exchange in ("shop.orders", "shop.orders.dead", "shop.payments", "shop.emails", "shop.events"):
        channel.exchange_delete(exchange)
    channel.exchange_delete("shop.emails.rejected")


def rate(queue, what):
    """A rate of the last sample; 0 where the broker has none yet."""
    return queue.get("message_stats", {}).get(f"{what}_details", {}).get("rate", 0)


def test_the_shop_moves_messages_and_is_healthy(lab, shop, queues, client_names, wait_until):
    """Every consumed queue acks what is published, hardly anything is redelivered, nothing piles up, all by name."""
    node = lab.nodes[0]

    def steady():
        seen = queues(node)
        busy = [name for name in CONSUMED if name in seen and rate(seen[name], "ack") > 0]
        # A queue is listed before its first statistics are there.
        reported = all("messages" in seen.get(name, {}) for name in MADE)
        return seen if reported and len(busy) == len(CONSUMED) else None

    wait_until(steady, "every consumer acknowledges")
    wait_until(lambda: client_names(node) >= {job.name for job in JOBS}, "every connection has its name")
    wait_until(lambda: queues(node)["shop.emails.retry"].get("messages"), "a refused email waits for its retry")
    seen = wait_until(steady, "and all of them still do")

    assert set(MADE) <= set(seen)
    for name in CONSUMED:
        assert seen[name]["messages"] < 20, name
        # A consumer that lost its connection on a busy machine brings back the few that it held; a loop, hundreds.
        assert 5 > seen[name]["message_stats"].get("redeliver", 0), name
    assert 0 == seen["shop.emails.retry"]["consumers"]
    assert 0 == seen["shop.orders.dead"]["messages"]
    assert "quorum" == seen["shop.orders"]["type"]


def test_the_shop_ends_with_its_parent(lab, shop, client_names, wait_until):
    """The end of its input ends it cleanly, and its connections with it."""
    node = lab.nodes[0]
    wait_until(lambda: "shop-orders-publisher" in client_names(node), "it is connected")

    shop.stdin.close()

    assert 0 == shop.wait(20)
    wait_until(lambda: not any(name.startswith("shop-") for name in client_names(node)), "connections are gone")


@pytest.mark.parametrize("version", ["3.10", "4.3"])
def test_the_shop_goes_on_after_the_broker_was_killed(version, queues, wait_until):
    """It reconnects by itself; its durable queues are there still."""
    with start_lab(version) as lab:
        node = lab.nodes[0]
        command = [sys.executable, "-m", "lab.workload", "--amqp", node.amqp]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as shop:

            def acking():
                return all(rate(queues(node).get(name, {}), "ack") > 0 for name in CONSUMED)

            wait_until(acking, "it works")
            lab.kill(0)
            lab.restart(0)
            wait_until(acking, "it works again")

            assert shop.poll() is None

            shop.stdin.close()
