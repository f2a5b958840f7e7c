"""What is shipped, made once: `make ship-test` runs these tests, not `make test`, because they take minutes.

`make kube-test` runs those on a real Kubernetes API.
"""

import sys

import pytest

from lab.cluster import start_lab
from tests.ship.kube_schemas import definitions
from tests.ship.kube_server import kube_server
from tests.ship.running import ROOT, run


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    """The files of a release of this tree; the script itself compares two builds."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, ROOT / "scripts/release.py", "-o", folder)
    return folder


@pytest.fixture(scope="session")
def uv():
    """The path of uv."""
    return run(ROOT / "scripts/uv.sh").strip()


@pytest.fixture(scope="session")
def broker():
    """A broker of the distribution, which nothing was made on."""
    with start_lab("distro") as lab:
        yield lab


@pytest.fixture(scope="session")
def kube(tmp_path_factory):
    """A Kubernetes API with the definitions of the operators, three namespaces, and an account without rights."""
    with kube_server(tmp_path_factory.mktemp("kube")) as server:
        for definition in definitions():
            server.define(definition)
        for name in ("ackscope", "rabbits", "depots"):
            server.namespace(name)
        server.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "nobody"}})
        yield server
