"""An exporter that reads its file again, on real brokers, as a process of its own."""

import socket
import time
from urllib.parse import urlsplit

import pytest

from tests.integration.exporter.running import Management, eventually, exporting
from tests.unit.exporter.made import promtool

pytestmark = pytest.mark.integration

OK = "ackscope_config_last_reload_successful"
POLLS = 'ackscope_poll_attempts_total{{cluster="{}",family="overview"}}'
SUCCESS = 'ackscope_poll_success{{cluster="{}",family="overview"}}'
ACKED = 'ackscope_confirms_total{cluster="shop",probe="confirm",stream="classic",queue_type="classic",outcome="acked"}'


@pytest.fixture
def node(lab_43):
    """A node; what the probes make there goes with the test."""
    yield lab_43.nodes[0]
    Management(lab_43.nodes[0]).sweep("ackscope.probe.", "exporter-test.")


def test_a_second_cluster_comes_and_goes_and_the_first_does_not_notice(node, lab_310, tmp_path):
    """Two brokers in one process; the first one's polls, probes and series go on without a gap all the time."""
    other = lab_310.nodes[0]
    with exporting(node, tmp_path, probes={"enabled": ["confirm"]}) as exporter:
        eventually(lambda: (exporter.value(ACKED) or 0) > 5)
        (child,) = exporter.children()
        shop, gaps = exporter.document["clusters"]["shop"], []

        def watched(read):
            """Ask for something, and note when the first cluster is not shown whole meanwhile."""
            text = exporter.get("/metrics").text
            gaps.extend(sample for sample in (SUCCESS.format("shop"), ACKED) if f"{sample} " not in text)
            return read(text)

        exporter.write(clusters={"shop": shop, "depot": {"management": {"url": other.management}}})
        came = exporter.reload()
        eventually(lambda: watched(lambda text: f"{SUCCESS.format('depot')} 1" in text))
        both = exporter.get("/metrics").text
        versions = {it["cluster"]: it["broker"] for it in exporter.get("/api/v1/findings").json()["clusters"]}
        one = exporter.get("/api/v1/snapshot?cluster=depot&families=overview").json()["clusters"]
        nowhere = exporter.get("/api/v1/snapshot?cluster=depo")
        acked, polls = exporter.value(ACKED), exporter.value(POLLS.format("shop"))
        exporter.write(clusters={"shop": shop})
        exporter.hang_up()
        eventually(lambda: watched(lambda text: 'cluster="depot"' not in text))
        eventually(lambda: watched(lambda _: exporter.value(ACKED) > acked))
        eventually(lambda: watched(lambda _: exporter.value(POLLS.format("shop")) > polls))
        again = exporter.children()
        code, _ = exporter.stop()

    assert (200, "reloaded: clusters new or moved: depot; probes unchanged\n") == came
    assert "" == promtool(both)
    assert {"shop": "4.3", "depot": "3.10"} == {name: it.rpartition(".")[0] for name, it in versions.items()}
    assert [("depot", {"overview"})] == [(it["cluster"], set(it["ages"])) for it in one]
    assert (400, "cluster='depo' is not known, did you mean 'depot'?; known: depot, shop\n") == (
        nowhere.status_code,
        nowhere.text,
    )
    assert [] == gaps
    assert [child.pid] == [process.pid for process in again]
    assert 0 == code


def test_a_new_password_is_used_after_a_reload(node, tmp_path):
    """A wrong one is refused by the broker and reported; the right one mends it; no restart, no gap in the queues."""
    parts, password = urlsplit(node.management), tmp_path / "password"
    password.write_text(parts.password)
    management = {
        "url": f"http://{parts.hostname}:{parts.port}",
        "username": parts.username,
        "password_file": str(password),
    }
    Management(node).declare("exporter-test.orders", "classic")
    orders = 'rabbitmq_queue_messages_ready{cluster="shop",vhost="/",queue="exporter-test.orders"}'
    with exporting(node, tmp_path, clusters={"shop": {"management": management}}) as exporter:
        eventually(lambda: exporter.value(orders) is not None)
        password.write_text("wrong")
        wrong = exporter.reload()
        eventually(lambda: exporter.value(SUCCESS.format("shop")) == 0)
        retained = exporter.value(orders)
        password.write_text(parts.password)
        exporter.hang_up()
        eventually(lambda: exporter.value(SUCCESS.format("shop")) == 1)
        exporter.stop()

    assert (200, "reloaded: clusters changed: shop; probes unchanged\n") == wrong
    assert 0 == retained


def test_a_wrong_file_is_reported_and_everything_goes_on(node, tmp_path):
    """By SIGHUP the log has the line, by POST the answer, too."""
    with exporting(node, tmp_path, probes={"enabled": []}) as exporter:
        eventually(lambda: exporter.value(SUCCESS.format("shop")) == 1)
        exporter.write(poll={"interval": "soon"})
        exporter.hang_up()
        eventually(lambda: exporter.value(OK) == 0)
        posted = exporter.reload()
        polls = exporter.value(POLLS.format("shop"))
        eventually(lambda: exporter.value(POLLS.format("shop")) > polls)
        exporter.write(poll={"interval": "2s"})
        repaired = exporter.reload()
        healthy = exporter.value(OK)
        exporter.stop()
    line = (
        f"not reloaded, keeping the current settings: {tmp_path}/ackscope.yml: "
        "poll.interval: 'soon' is not a duration, write 30s, 5m, 1h or 200ms"
    )

    assert (500, f"{line}\n") == posted
    assert 2 == exporter.log.read_text().count('msg="configuration not reloaded"')
    assert (200, "reloaded: clusters changed: shop; probes unchanged\n") == repaired
    assert 1 == healthy


def test_a_service_manager_is_reported(node, tmp_path):
    """Ready once the broker has answered, reloading and ready again, signs of life, stopping: on a real socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "3000000"}
        with exporting(node, tmp_path, environ=environ, probes={"enabled": []}) as exporter:
            reported = [manager.recv(4096).decode()]
            while not reported[-1].startswith("READY=1"):
                reported.append(manager.recv(4096).decode())
            ready = exporter.get("/-/ready").status_code
            exporter.hang_up()
            while not reported[-1].startswith("RELOADING=1"):
                reported.append(manager.recv(4096).decode())
            while not reported[-1].startswith("READY=1"):
                reported.append(manager.recv(4096).decode())
            began = time.monotonic()
            while reported[-1] != "WATCHDOG=1":
                reported.append(manager.recv(4096).decode())
            waited = time.monotonic() - began
            exporter.stop()
            while reported[-1] != "STOPPING=1":
                reported.append(manager.recv(4096).decode())
    states = [it.split("\n")[1] for it in reported if it.startswith("READY=1")]

    assert 200 == ready
    assert [
        f"STATUS=serving {exporter.url}",
        f"STATUS=serving {exporter.url}; reloaded: clusters unchanged; probes unchanged",
    ] == states
    assert waited < 3


def test_a_broker_is_read_that_only_the_request_names(node, lab_310, tmp_path):
    """One module, two brokers of two versions; a third that the module does not name is refused."""
    addresses = [urlsplit(it.management) for it in (node, lab_310.nodes[0])]
    one, other = (f"127.0.0.1:{it.port}" for it in addresses)
    credentials = addresses[0]
    module = {"targets": [one, other], "username": credentials.username, "password": credentials.password}
    with exporting(node, tmp_path, clusters={}, modules={"prod": module}) as exporter:
        pages = [exporter.get(f"/probe?module=prod&target={it}", 30) for it in (one, other)]
        refused = exporter.get("/probe?module=prod&target=127.0.0.1:1")
        both = exporter.get("/probe?module=prod&probe=rtt&target=127.0.0.1:1")
        exporter.stop()

    assert [200, 200, 400, 400] == [it.status_code for it in (*pages, refused, both)]
    assert ["", ""] == [promtool(it.text) for it in pages]
    assert all("\nprobe_success 1\n" in it.text for it in pages)
    assert all(
        f'rabbitmq_build_info{{cluster="{it}"' in page.text for it, page in zip((one, other), pages, strict=True)
    )
    assert "add it to `targets` of the module" in refused.text
