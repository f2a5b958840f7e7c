"""The options of `ackscope probe`: defaults of each probe, and the options that apply to it."""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from ackscope.errors import UsageError
from probes import confirm, delivery, handshake, nack, prefetch, redelivery, rtt
from probes.amqp10 import outcomes, reject, settle
from probes.settings import ProbesSettings

RATE = 50.0
UNDECIDED = 10.0
"""Seconds after which a message of a one-shot run counts as undecided."""

_MESSAGES = {"rate", "payload"}
_MANY = 10_000


class OneShot(NamedTuple):
    """Defaults of a one-shot run of a probe.

    Attributes:
        duration: default of --for, in seconds.
        takes: options that apply to it, in addition to those of all probes.
        settings: settings that differ from continuous probes.
        every: seconds between rounds; 0 if the probe sends at a rate.
    """

    duration: float
    takes: frozenset[str]
    settings: Mapping[str, Any]
    every: float = 0.0


_SENDING = {"undecided_after": UNDECIDED, "max_outstanding": _MANY}

ONE_SHOTS: Mapping[str, OneShot] = {
    handshake.NAME: OneShot(10.0, frozenset({"every"}), {}, 0.5),
    rtt.NAME: OneShot(10.0, frozenset({"every"}), {}, 0.05),
    confirm.NAME: OneShot(10.0, frozenset(_MESSAGES | {"queue_type", "stream", "strategy"}), _SENDING),
    delivery.NAME: OneShot(
        10.0,
        frozenset(_MESSAGES | {"queue_type"}),
        {**_SENDING, "missing_after": UNDECIDED, "prefetch": 1000},
    ),
    redelivery.NAME: OneShot(
        10.0, frozenset({"every", "queue_type"}), {"timeout": 5.0, "connection_loss_every": 2.0}, 0.5
    ),
    prefetch.NAME: OneShot(40.0, frozenset({"queue_type", "processing", "prefetch"}), {}),
    nack.NAME: OneShot(10.0, frozenset(_MESSAGES), {"undecided_after": UNDECIDED}),
    settle.NAME: OneShot(10.0, frozenset(_MESSAGES | {"queue_type"}), _SENDING),
    reject.NAME: OneShot(10.0, frozenset(_MESSAGES), {"undecided_after": UNDECIDED}),
    outcomes.NAME: OneShot(10.0, frozenset({"every", "queue_type"}), {"timeout": 5.0, "disruption_every": 2.0}, 0.5),
}
"""Defaults of every probe by its name."""

_CHECKED = ("rate", "every", "payload", "queue_type", "stream", "strategy", "processing", "prefetch")
_KEYS = {"rate": "--rate", "control_rate": "--rate", "payload_bytes": "--payload", "prefix": "--prefix"}
_KEYS |= {"interval": "--every"}


def refuse_useless(args: argparse.Namespace) -> None:
    """Reject an option that the probe would ignore.

    Raises:
        UsageError: the message names the option and the probes that it applies to.
    """
    takes = ONE_SHOTS[args.name].takes
    for option in _CHECKED:
        if getattr(args, option) is not None and option not in takes:
            fitting = ", ".join(name for name, shot in ONE_SHOTS.items() if option in shot.takes)
            raise UsageError(
                f"--{option.replace('_', '-')}: does not apply to the {args.name} probe (only to {fitting})"
            )


def settings_of(args: argparse.Namespace) -> ProbesSettings:
    """Return the settings of the requested probe.

    Raises:
        UsageError: the message names the invalid option.
    """
    shot = ONE_SHOTS[args.name]
    own: dict[str, Any] = dict(shot.settings)
    if shot.every:
        own["interval"] = shot.every if args.every is None else args.every
    if "rate" in shot.takes:
        own["rate"] = RATE if args.rate is None else args.rate
    if args.payload is not None:
        own["payload_bytes"] = args.payload
    if args.name == confirm.NAME:
        own["control_rate"] = own["rate"]
    wanted = args.stream or args.queue_type
    if wanted:
        own["streams" if args.name == confirm.NAME else "queue_types"] = tuple(dict.fromkeys(wanted))
    try:
        return ProbesSettings.model_validate({"enabled": (args.name,), "prefix": args.prefix, args.name: own})
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][-1])
        raise UsageError(f"{_KEYS.get(key, key)}: {first['msg'].lower()}") from None
