"""What has to be made on a broker before ackscope can watch it, as data. Pure."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from exporter.setup.survey import BrokerSurvey, path

PROBE_PERMISSIONS = {
    "configure": r"^ackscope\.probe\.",
    "write": r"^(ackscope\.probe\.|amq\.default$)",
    "read": r"^ackscope\.probe\.",
}
"""What the probes need in their virtual host, and no more."""

_NOTHING = {"configure": "", "write": "", "read": ""}


@dataclass(frozen=True, slots=True)
class SetupNames:
    """The names of what is made.

    Attributes:
        monitor: the user that reads the management API.
        probe: the user of the probes; None: there are no probes.
        vhost: the virtual host of the probes.
    """

    monitor: str
    probe: str | None
    vhost: str


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One change.

    Attributes:
        command: the same change as a command for an administrator, without a password.
        path: what to PUT it to, in the management API.
        document: what to PUT; the password of a user is added where the request is sent.
        user: the user whose password belongs into the document; None if it needs none.
    """

    command: str
    path: str
    document: Mapping[str, Any]
    user: str | None = None


def steps(broker: BrokerSurvey, names: SetupNames, renew: Collection[str] = ()) -> list[SetupStep]:
    """The changes that are still to make, in order; of an administrator's survey.

    Args:
        broker: what is there.
        names: what should be there.
        renew: users that get a new password even if they exist.
    """
    found = [*_user(broker, names.monitor, frozenset({"monitoring"}), renew)]
    if names.probe is not None:
        if names.vhost not in broker.vhosts:
            found.append(SetupStep(_ctl("add_vhost", names.vhost), path("vhosts", names.vhost), {}))
        found += _user(broker, names.probe, frozenset(), renew)
        if names.vhost not in broker.permitted.get(names.probe, ()):
            found.append(_permission(names.vhost, names.probe, PROBE_PERMISSIONS))
    watched = dict.fromkeys([*broker.vhosts, *([names.vhost] if names.probe is not None else [])])
    permitted = broker.permitted.get(names.monitor, frozenset())
    return found + [_permission(vhost, names.monitor, _NOTHING) for vhost in watched if vhost not in permitted]


def _user(broker: BrokerSurvey, name: str, tags: frozenset[str], renew: Collection[str]) -> list[SetupStep]:
    present = broker.users.get(name)
    if present is not None and name not in renew and tags <= present:
        return []
    wanted = " ".join(sorted(tags | (present or frozenset())))
    create = "add_user" if present is None else "change_password"
    tagged = f" && {_ctl('set_user_tags', name, *wanted.split())}" if wanted else ""
    return [SetupStep(_ctl(create, name) + tagged, path("users", name), {"tags": wanted.replace(" ", ",")}, name)]


def _permission(vhost: str, user: str, rights: Mapping[str, str]) -> SetupStep:
    command = _ctl("set_permissions", "-p", vhost, user, rights["configure"], rights["write"], rights["read"])
    return SetupStep(command, path("permissions", vhost, user), dict(rights))


def _ctl(*words: str) -> str:
    return shlex.join(["rabbitmqctl", *words])
