"""Discovery beside a Kubernetes API, real or made up."""

from contextlib import contextmanager

from ackscope.clock import SystemClock
from exporter.discovery.kubernetes import KubernetesDiscovery
from exporter.discovery.settings import DiscoverySettings
from tests.unit.exporter.made import eventually


@contextmanager
def discovering(api, configured=(), **settings):
    """Discovery as long as the block runs; its `reported` has what it reported."""
    reported = []
    wanted = DiscoverySettings.model_validate(api.settings(**settings)).kubernetes

    def changed():
        reported.append(dict(running.clusters))
        return True

    running = KubernetesDiscovery(wanted, lambda: configured, changed, SystemClock())
    running.reported = reported
    running.start()
    try:
        yield running
    finally:
        running.stop()


def has(running, *names, seconds=20.0):
    """Wait until exactly these clusters are watched."""
    eventually(lambda: set(names) == running.clusters.keys(), seconds)
