"""One real broker in trouble: a shop on it, an exporter with probes beside it, the page, and faults held in it."""

import base64
import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import requests
import yaml

from lab.cluster import Lab, start_lab
from lab.demo.cores import share_this_machine
from lab.demo.prometheus import answers
from lab.demo.services import Service, Services
from lab.faults import FAULTS
from lab.faults.fault import FaultSpec
from lab.ports import free_ports

CLUSTER = "shop"
BROKER = "4.3"
MONITOR, PROBE = "monitor", "probe"
"""Users of the exporter; their passwords stand nowhere but in its configuration."""

_READY, _EFFECT, _VERIFIED = 90.0, 120.0, 300.0
_RIGHTS = {
    # Without any right in a virtual host, the broker does not list its queues to a user with the tag `monitoring`.
    MONITOR: {"configure": "", "write": "", "read": ""},
    PROBE: {
        "configure": r"^ackscope\.probe\.",
        "write": r"^(ackscope\.probe\.|amq\.default$)",
        "read": r"^ackscope\.probe\.",
    },
}
_LOOK = 0.5

Reported = dict[str, Any]
"""A finding as the API tells it."""


@dataclass(frozen=True, slots=True)
class Held:
    """A fault in effect.

    Attributes:
        subject: what the injector says that the finding is about: kind, vhost, name; a name of "" is any.
    """

    spec: FaultSpec
    subject: dict[str, str | None]

    def is_named_by(self, reported: Reported) -> bool:
        """Whether a finding names it: the right rule about the right thing."""
        subject = reported["subject"]
        return (
            reported["rule"] == self.spec.rule
            and subject["kind"] == self.subject["kind"]
            and self.subject["name"] in {"", subject["name"]}
        )


@dataclass(slots=True)
class Trouble:
    """All of it, running.

    Attributes:
        exporter, page: URLs.
        folder: holds the logs, the landing files, the rollups.
        secrets: passwords of its configuration, and what else would give them away.
        last: the finding of each held fault, as it was reported last.
    """

    lab: Lab
    services: Services
    folder: Path
    exporter: str
    page: str
    secrets: tuple[str, ...] = ()
    held: dict[str, Held] = field(default_factory=dict)
    last: dict[str, Reported] = field(default_factory=dict)

    @property
    def landing(self) -> Path:
        """Where the exporter writes."""
        return self.folder / "landing"

    @property
    def semantics(self) -> Path:
        """What `ackscope verify` says of this broker."""
        return self.folder / "verified.json"

    @property
    def rollups(self) -> Path:
        """Where the pipeline writes."""
        return self.folder / "rollups"

    def findings(self) -> list[Reported]:
        """What is reported now, the causes only; none while the exporter does not answer."""
        try:
            clusters = requests.get(f"{self.exporter}/api/v1/findings", timeout=10).json()["clusters"]
        except (requests.RequestException, ValueError):
            return []
        return list(clusters[0]["findings"])

    def hold(self, names: Iterable[str]) -> None:
        """Put faults into the broker, all at once, and hold them.

        Raises:
            ServiceFailed: one did not come into effect.
        """
        node = self.lab.nodes[0]
        where = ("--amqp", node.amqp, "--management", node.management, "--lab", str(self.lab.folder))
        started = {name: self.services.start_python(f"fault-{name}", "lab.faults", name, *where) for name in names}
        for name, service in started.items():
            service.wait_until(lambda it=service: _announced(it) is not None, "its effect", _EFFECT)
            said = _announced(service) or {}
            self.held[name] = Held(FAULTS[name], said["subject"])

    def end(self, names: Iterable[str]) -> None:
        """Take faults out again."""
        for name in names:
            self.services.stop(f"fault-{name}")
            del self.held[name]

    def verify(self) -> None:
        """Check what is documented against this broker, for the page Semantics; it takes half a minute, beside."""
        new = f"{self.semantics}.new"
        words = f"{sys.executable} -m ackscope verify --amqp {self.lab.nodes[0].amqp} --json"
        self.services.start("verify", ["sh", "-c", f"{words} > {new}; mv {new} {self.semantics}; sleep infinity"])

    def wait_verified(self) -> None:
        """Until that is done.

        Raises:
            ServiceFailed: it takes too long.
        """
        done = next(it for it in self.services.running if it.name == "verify")
        done.wait_until(lambda: self.semantics.stat().st_size > 0, "its end", _VERIFIED)

    def named(self, names: Sequence[str], seconds: float) -> dict[str, Reported]:
        """The finding of each of some held faults; without those that are not named in time."""
        deadline = time.monotonic() + seconds
        while True:
            reported = self.findings()
            found = {name: each for name in names for each in reported if self.held[name].is_named_by(each)}
            if len(found) == len(names) or time.monotonic() > deadline:
                self.last.update(found)
                return found
            time.sleep(_LOOK)

    def reported_of(self, name: str) -> Reported:
        """The finding of a held fault, as it is reported now or was last.

        Raises:
            KeyError: none ever named it.
        """
        self.named([name], 0)
        return self.last[name]


def _announced(service: Service) -> Reported | None:
    """The line that a fault prints once it is in effect."""
    lines = service.log.read_text(errors="replace").splitlines()
    return next((orjson.loads(line) for line in lines if line.startswith("{")), None)


def _make_users(management: str) -> dict[str, str]:
    """Users with the rights that SECURITY.md tells, and their passwords."""
    passwords = {name: f"{name}-{secrets.token_urlsafe(16)}" for name in (MONITOR, PROBE)}
    for name, tags in ((MONITOR, "monitoring"), (PROBE, "")):
        user = {"password": passwords[name], "tags": tags}
        requests.put(f"{management}/api/users/{name}", json=user, timeout=10).raise_for_status()
        url = f"{management}/api/permissions/{quote('/', safe='')}/{name}"
        requests.put(url, json=_RIGHTS[name], timeout=10).raise_for_status()
    return passwords


def _config(lab: Lab, folder: Path, listen: str, passwords: dict[str, str]) -> Path:
    node = lab.nodes[0]
    path = folder / "ackscope.yml"
    path.touch(mode=0o600)
    management = {"url": _bare(node.management), "username": MONITOR, "password": passwords[MONITOR]}
    amqp = {"url": f"amqp://{PROBE}:{passwords[PROBE]}@{_bare(node.amqp).partition('://')[2]}"}
    sharing = share_this_machine()
    document = {
        "listen": listen,
        "clusters": {CLUSTER: {"management": management, "amqp": amqp}},
        "poll": {"budget": 0.2},
        "landing": {"directory": str(folder / "landing"), "rotate": "5s"},
        "history": {"rollups": str(folder / "rollups"), "every": "10s"},
        "probes": {
            "confirm": {"rate": 10},
            "delivery": {"rate": 5},
            # As in the demo: what shares the machine must not make the probes doubtful.
            "priority": sharing.priority,
            "realtime": sharing.realtime,
            "cores": list(sharing.probes),
        },
    }
    path.write_text(yaml.safe_dump(document))
    return path


def _bare(url: str) -> str:
    """Without user and password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _telltales(passwords: dict[str, str]) -> tuple[str, ...]:
    """The passwords, and the same as a login of HTTP."""
    logins = (base64.b64encode(f"{user}:{word}".encode()).decode() for user, word in passwords.items())
    return (*passwords.values(), *logins)


@contextlib.contextmanager
def in_trouble(*, folder: Path | None = None) -> Iterator[Trouble]:
    """Start everything; nothing of it is left at the end.

    Args:
        folder: keeps the files beyond the end; else they are wiped.

    Raises:
        BrokerError: no broker.
        ServiceFailed: a part did not come up; the message holds the end of its log.
    """
    with contextlib.ExitStack() as cleanup:
        folder = folder or Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="ackscope-trouble-")))
        services = Services(folder)
        lab = cleanup.enter_context(start_lab(BROKER))
        cleanup.callback(services.stop)
        exporter, page = (f"127.0.0.1:{port}" for port in free_ports(2))
        passwords = _make_users(lab.nodes[0].management)
        trouble = Trouble(lab, services, folder, f"http://{exporter}", f"http://{page}", _telltales(passwords))
        trouble.landing.mkdir(exist_ok=True)
        trouble.semantics.touch()
        services.start_python("workload", "lab.workload", "--amqp", lab.nodes[0].amqp)
        config = _config(lab, folder, exporter, passwords)
        watcher = services.start_python("exporter", "ackscope", "exporter", "--config", str(config))
        words = ["--exporter", trouble.exporter, "--rollups", str(trouble.rollups), "--listen", page]
        words += ["--notes", str(folder / "notes.jsonl"), "--semantics", str(trouble.semantics)]
        web = services.start_python("dashboard", "ackscope", "dashboard", *words)
        watcher.wait_until(lambda: answers(f"{trouble.exporter}/-/ready"), "a response from /-/ready", _READY)
        web.wait_until(lambda: answers(f"{trouble.page}/_stcore/health", "ok"), "a response", _READY)
        yield trouble
