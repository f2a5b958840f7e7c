import sys
import threading

import pytest
from pydantic import SecretStr

from ackscope.clock import SystemClock
from exporter.probes_host.ondemand import OnDemandProbes, OnDemandRequest, cli_arguments
from probes.settings import AmqpSettings
from tests.unit.exporter.made import eventually

SHOP = AmqpSettings(url=SecretStr("amqp://us%40er:hush@host:5673/my%20vhost"))
REPORTS = """
import sys
print(" ".join(sys.argv[1:]))
print("WARNING amqp://user:" + open("/dev/stdin").readline().strip() + "@host is slow", file=sys.stderr)
sys.exit(1)
"""
SWEEPS = """
import signal, time
signal.signal(signal.SIGTERM, signal.default_int_handler)
print("begun", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("swept", flush=True)
    raise SystemExit(130)
"""
HANGS = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)
"""


def shots(script):
    """Runs this script in place of `ackscope probe`."""
    return OnDemandProbes({"shop": SHOP, "depot": SHOP}, "my.prefix", SystemClock(), [sys.executable, "-c", script])


def order(**changes):
    """The rtt probe of the shop."""
    return OnDemandRequest(**{"cluster": "shop", "probe": "rtt", "within": 20.0, "as_json": True, **changes})


def test_what_the_child_prints_and_logs_is_handed_back():
    """The exit code is returned too; the password goes through a pipe and into no text."""
    ran = shots(REPORTS).run(order())

    assert (1, "WARNING amqp://user:***@host is slow\n") == (ran.code, ran.log)
    assert "hush" not in ran.report
    assert "rtt --amqp amqp://us%40er@host:5673/my%20vhost --password-file /dev/stdin" in ran.report
    assert ran.seconds > 0


def test_a_child_that_takes_too_long_is_interrupted_so_that_it_sweeps():
    """After the timeout there is no exit code, and the output so far is returned."""
    ran = shots(SWEEPS).run(order(within=3.0))

    assert (None, "begun\nswept\n") == (ran.code, ran.report)


def test_a_child_that_does_not_listen_is_killed():
    """No run exceeds its timeout by more than the grace period."""
    ran = shots(HANGS).run(order(within=0.5))

    assert ran.code is None
    assert ran.seconds < 20


def test_a_cluster_has_one_run_at_a_time():
    """A second run is refused, one of another cluster is not, and the next one after the end runs."""
    runs = shots(SWEEPS)
    found = []
    first = threading.Thread(target=lambda: found.append(runs.run(order(within=2.0))))
    first.start()
    eventually(runs.busy)
    refused, other = runs.run(order()), runs.run(order(cluster="depot", within=0.2))
    first.join()

    assert (None, False) == (refused, runs.busy())
    assert [None, None] == [other.code, found[0].code]


def test_a_stop_ends_what_runs():
    """The child is given its time to sweep, and no other is started."""
    runs = shots(SWEEPS)
    found = []
    first = threading.Thread(target=lambda: found.append(runs.run(order())))
    first.start()
    eventually(runs.busy)
    runs.stop()
    first.join(10)

    assert [None] == [ran.code for ran in found]
    assert runs.run(order()) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"url": "amqps://host", "verify": False, "ca_file": "/ca.pem"}, ["--ca-file", "/ca.pem", "--no-verify"]),
        ({"url": "amqp://host", "verify": False, "ca_file": "/ca.pem"}, []),
    ],
)
def test_tls_is_as_the_configuration_has_it(changes, expected):
    """An address without TLS has no certificate to check."""
    reported = cli_arguments(order(within=6.0, as_json=False), AmqpSettings.model_validate(changes).server(), "p")

    assert expected == reported[reported.index("p") + 1 :]
    assert "2.000s" == reported[reported.index("--for") + 1]


@pytest.mark.parametrize(("probe", "expected"), [("streaming", ["--stream-port", "7000"]), ("rtt", [])])
def test_the_port_of_streams_is_for_the_probe_that_uses_it(probe, expected):
    """The command refuses an option that would be ignored."""
    server = AmqpSettings.model_validate({"url": "amqp://host", "stream_port": 7000}).server()
    reported = cli_arguments(order(probe=probe, as_json=False), server, "p")

    assert expected == reported[reported.index("p") + 1 :]
