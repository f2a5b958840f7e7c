"""Real brokers, each version started once a test run.

Ask for `lab` to run a test against every version, for `lab_310` or `lab_43` where one version is meant. They are
shared: leave no queues behind, and start a lab of your own (`lab.cluster.start_lab`) to kill or restart a node.
"""

import pytest

from lab.cluster import start_lab


@pytest.fixture(scope="session")
def lab_310():
    """One node of RabbitMQ 3.10."""
    with start_lab("3.10") as running:
        yield running


@pytest.fixture(scope="session")
def lab_43():
    """One node of RabbitMQ 4.3."""
    with start_lab("4.3") as running:
        yield running


@pytest.fixture(scope="session", params=["3.10", "4.3"])
def lab(request):
    """One node, of each version in turn."""
    return request.getfixturevalue({"3.10": "lab_310", "4.3": "lab_43"}[request.param])
