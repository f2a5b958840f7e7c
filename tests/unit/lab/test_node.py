from lab.brokers import Broker
from lab.node import Extra, NodeRunner


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
