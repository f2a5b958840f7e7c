"""The files that `ackscope init` writes: a configuration without secrets, and one file for each password. Pure."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CONFIG = "ackscope.yml"
CREDENTIALS = "credentials"

_UNIT_CREDENTIALS = Path("/run/credentials/ackscope-exporter.service")
"""Where the systemd unit shows copies of the password files to the exporter."""

_HEAD = """\
# Written by `ackscope init`. Every key: docs/configuration.md, or `ackscope exporter --help`.
# Passwords are in files that only their owner can read.
"""


@dataclass(frozen=True, slots=True)
class InitLayout:
    """Where files go.

    Attributes:
        folder: folder of the configuration.
        data: folder of landing files, rollups and triage.
        systemd: whether the systemd unit runs the exporter.
    """

    folder: Path
    data: Path
    systemd: bool

    @property
    def config(self) -> Path:
        """The configuration; the unit names it otherwise."""
        return self.folder / ("exporter.yml" if self.systemd else CONFIG)

    def password_file(self, role: str) -> Path:
        """The file with the password of `monitor` or `probe`."""
        return self.folder / CREDENTIALS / role

    def seen_by_exporter(self, role: str) -> Path:
        """The same file as the exporter sees it."""
        return _UNIT_CREDENTIALS / role if self.systemd else self.password_file(role)


def config_text(name: str, management: dict[str, Any], amqp: dict[str, Any] | None, layout: InitLayout) -> str:
    """The configuration of one cluster, as YAML.

    Args:
        name: name of the cluster.
        management: keys of `management`.
        amqp: keys of `amqp`; None: it is not probed.
        layout: where data goes.
    """
    cluster = {"management": management} | ({} if amqp is None else {"amqp": amqp})
    document = {
        "listen": "127.0.0.1:9419",
        "clusters": {name: cluster},
        "landing": {"directory": str(layout.data / "landing")},
        "history": {"rollups": str(layout.data / "rollups")},
        "triage": {"file": str(layout.data / "triage.json")},
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def name_from(cluster: str) -> str:
    """A name for a cluster that calls itself `rabbit@shop-1.example.org`: shop-1."""
    host = cluster.rpartition("@")[2].partition(".")[0]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", host).strip("-._")[:100]
    return name or "rabbitmq"
