"""Installations of RabbitMQ: the package of the host, or a chroot with another version.

A chroot folder has a minimal Debian with `rabbitmq-server`. It runs in a private mount namespace, so nothing stays
mounted after the process, however it ends.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackscope.cli import nearest
from ackscope.errors import MissingPart, UsageError
from lab.bootstrap import build, cache_directory

SUITES: Mapping[str, str] = {"3.10": "bookworm", "4.0": "trixie", "4.3": "sid"}
"""Versions by name, with the Debian suite that has them. `sid` changes over time, so the running version is queried."""

NAMES = ("distro", *SUITES)
"""Valid names; `distro` is the package of this host."""

_BIN = Path("/usr/lib/rabbitmq/bin")
_LIB = Path("/usr/lib/rabbitmq/lib")
_INSIDE = "/lab"

# Each step ends in exec, so that the started pid is that of the broker.
_ENTER = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/lab"
root=$1
shift 2
exec chroot "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A RabbitMQ that can be started.

    Attributes:
        asked: the requested name.
        version: of the package, such as 4.3.6.
        root: its chroot; None for the package of the host.
    """

    asked: str
    version: str
    root: Path | None = None

    def command(self, lab: Path, program: str, *arguments: str) -> list[str]:
        """Return the command line that runs a program of this broker.

        Args:
            lab: the folder of the lab, seen by the program under `inside(lab)`.
            program: its name; RabbitMQ's programs are those of the package, not the wrappers in /usr/sbin.
            *arguments: arguments of the program, unchanged.
        """
        path = str(_BIN / program) if program.startswith("rabbitmq") else program
        if self.root is None:
            return [path, *arguments]
        enter = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", _ENTER, "sh"]
        return [*enter, str(self.root), str(lab), path, *arguments]

    def inside(self, lab: Path) -> Path:
        """Return the path of the lab's folder as programs of this broker see it."""
        return lab if self.root is None else Path(_INSIDE)

    def prepare(self) -> None:
        """Prepare the chroot."""
        if self.root is None:
            return
        (self.root / _INSIDE.strip("/")).mkdir(exist_ok=True)
        # Without it the chroot cannot resolve `localhost`, and no Erlang node gets a name.
        fresh = self.root / f"etc/hosts.{os.getpid()}"
        shutil.copyfile("/etc/hosts", fresh)
        fresh.replace(self.root / "etc/hosts")


def find_broker(name: str, environ: Mapping[str, str] = os.environ) -> Broker:
    """Return the broker with this name; build its chroot if it is missing (40 s to 2 min, announced on stderr).

    Raises:
        UsageError: unknown name.
        MissingPart: a program or a permission is missing, or the build of the folder failed.
    """
    if name not in NAMES:
        raise UsageError(f"unknown broker {name!r}{nearest(name, list(NAMES))}; known: {', '.join(NAMES)}")
    host = installed(Path("/"))
    if name == "distro":
        if host is None:
            raise MissingPart(
                "RabbitMQ is missing: run make setup, or apt-get install rabbitmq-server, "
                f"or choose a version with --broker {' or '.join(SUITES)}"
            )
        return Broker(name, host)
    if host is not None and minor(host) == name:
        return Broker(name, host)
    if os.geteuid() != 0:
        raise MissingPart(f"the {name} broker runs in a chroot, which needs root: run as root or with sudo")
    for program in ("unshare", "chroot"):
        if shutil.which(program) is None:
            raise MissingPart(f"{program} is missing: apt-get install util-linux coreutils")
    root = cache_directory(environ) / "brokers" / SUITES[name]
    if installed(root) is None:
        build(name, SUITES[name], root)
    version = installed(root)
    if version is None:
        raise MissingPart(f"no RabbitMQ in {root}: remove this folder and try again")
    return Broker(name, version, root)


def installed(root: Path) -> str | None:
    """Return the version of the RabbitMQ package under `root`; None without one."""
    folders = sorted((root / str(_LIB).lstrip("/")).glob("rabbitmq_server-*"))
    if not folders or not (root / str(_BIN / "rabbitmq-server").lstrip("/")).exists():
        return None
    return folders[-1].name.removeprefix("rabbitmq_server-")


def minor(version: str) -> str:
    """Return the minor version: `4.3` for `4.3.6`."""
    return ".".join(version.split(".")[:2])
