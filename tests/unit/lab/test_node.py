import pytest

from ackscope.errors import Unreachable
from lab import node as lab_node
from lab.brokers import Broker
from lab.node import Extra, LabNode, NodeRunner, wait_answers
from tests.unit.exporter.broker.server import json, serve


def files_of(folder, extra):
    """The files that a node of the host's own broker gets, by name."""
    NodeRunner(Broker("distro", "4.3.6"), folder, 1, 4369, tied=False, extra=extra)
    return {file.name: file.read_text() for file in (folder / "lab1").iterdir()}


def test_a_node_has_the_usual_and_no_more(tmp_path):
    """A node has two plugins, its own ports, and empty files instead of those of the host."""
    files = files_of(tmp_path, Extra())

    assert files["enabled_plugins"] == "[rabbitmq_management,rabbitmq_prometheus].\n"
    assert files["rabbitmq.conf"].endswith("disk_free_limit.absolute = 10MB\n")
    assert ("[].\n", "") == (files["advanced.config"], files["rabbitmq-env.conf"])


def test_what_a_test_wants_beyond_comes_on_top(tmp_path):
    """Plugins, lines with the folder as the node sees it, and files, of which one may replace the usual."""
    files = files_of(
        tmp_path,
        Extra(
            plugins=("rabbitmq_shovel",),
            config="ssl_options.certfile = {folder}/cert.pem\n",
            files={"cert.pem": b"PEM", "advanced.config": b"[{rabbit, []}].\n"},
        ),
    )

    assert files["enabled_plugins"] == "[rabbitmq_management,rabbitmq_prometheus,rabbitmq_shovel].\n"
    assert files["rabbitmq.conf"].endswith(f"\nssl_options.certfile = {tmp_path}/lab1/cert.pem\n")
    assert ("PEM", "[{rabbit, []}].\n") == (files["cert.pem"], files["advanced.config"])


def test_each_port_that_a_plugin_asks_for_is_another_one(tmp_path):
    """Listeners of plugins have fixed ports by default, which two labs at once cannot share."""
    conf = files_of(tmp_path, Extra(config="mqtt.listeners.tcp.1 = {port}\nstream.listeners.tcp.1 = {port}\n"))[
        "rabbitmq.conf"
    ]
    ports = [int(line.split()[-1]) for line in conf.splitlines() if line.startswith(("mqtt", "stream"))]

    assert 2 == len(set(ports))


def started(monkeypatch, listeners, open_listeners):
    """Wait for a node whose AMQP and management listeners are open."""
    monkeypatch.setattr(lab_node, "amqp_opens", lambda url: True)
    routes = {f"/api/health/checks/port-listener/{port}": json({"status": "ok"}) for port in open_listeners}
    with serve({"/api/overview": json({"node": "lab1@localhost"}), "/api/nodes": json([]), **routes}) as server:
        node = LabNode(name="lab1@localhost", amqp="amqp://127.0.0.1", management=server.url, prometheus="")
        wait_answers(node, 0.3, listeners=listeners, lives=lambda: True)


def test_a_node_is_ready_once_all_its_listeners_are_open(monkeypatch):
    """The management API responds before the last plugin listens."""
    started(monkeypatch, (20001, 20002), (20001, 20002))

    with pytest.raises(Unreachable, match=r"^lab1@localhost was not ready within 0 s$"):
        started(monkeypatch, (20001, 20002), (20001,))
