"""The section `discovery` of the configuration."""

import pytest
import yaml

from ackscope.errors import ConfigError
from ackscope.settings import load
from exporter.commands.serve import describe
from exporter.settings import ExporterSettings


def read(folder, **discovery):
    """The settings of a file with this section; the token is there unless the section says otherwise."""
    (folder / "token").write_text("hush\n")
    section = {"enabled": True, "token_file": str(folder / "token"), "server_ca_file": None, **discovery}
    file = folder / "ackscope.yml"
    file.write_text(yaml.safe_dump({"discovery": {"kubernetes": section}}))
    return load(ExporterSettings, file, {})


def test_discovery_alone_is_something_to_do(tmp_path):
    """No cluster needs to be named; the check of the file says where it looks."""
    assert "monitors RabbitmqCluster objects in all namespaces;" in describe(read(tmp_path))
    assert "monitors RabbitmqCluster objects in a, b;" in describe(read(tmp_path, namespaces=["a", "b", "a"]))


@pytest.mark.parametrize(
    ("discovery", "problem"),
    [
        ({"namespaces": ["Rabbits"]}, "discovery.kubernetes.namespaces: invalid namespace 'Rabbits'; use lower-case"),
        ({"namespaces": [f"n{it}" for it in range(51)]}, "more than 50 namespaces; use an empty list"),
        ({"namespace": "a"}, "discovery.kubernetes.namespace: unknown key, did you mean 'namespaces'?"),
        ({"server": "https://kube"}, "discovery.kubernetes.server: invalid address; use https://HOST:PORT"),
        ({"server": "https://u:p4ss@kube:443"}, "discovery.kubernetes.server: invalid address; use"),
        ({"refresh": "0s"}, "discovery.kubernetes.refresh: must be at least 1"),
        ({"domain": "svc/../x"}, "discovery.kubernetes.domain: invalid end of a host name"),
        ({"token_file": "/nowhere/token"}, "discovery.kubernetes: token_file: /nowhere/token cannot be read (No such"),
        ({"server_ca_file": "/dev/null"}, "discovery.kubernetes: server_ca_file: cannot read PEM certificates from"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_key(tmp_path, discovery, problem):
    """Without a password."""
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, **discovery)

    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "p4ss" not in str(raised.value)


def test_files_are_not_needed_unless_it_is_enabled(tmp_path):
    """Outside of Kubernetes there are none; then there is nothing to do."""
    with pytest.raises(ConfigError, match="no cluster and no module configured"):
        read(tmp_path, enabled=False, token_file="/nowhere/token")
