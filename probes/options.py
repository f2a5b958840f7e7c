"""The options of `ackscope probe`: which apply to a probe, and the settings that they make."""

import argparse
from typing import Any

from pydantic import ValidationError

from ackscope.errors import UsageError
from probes.catalogue import PROBES, confirm
from probes.settings import ProbesSettings

RATE = 50.0

_CHECKED = ("rate", "every", "payload", "queue_type", "stream", "strategy", "processing", "prefetch", "stream_port")
_KEYS = {"rate": "--rate", "control_rate": "--rate", "payload_bytes": "--payload", "prefix": "--prefix"}
_KEYS |= {"interval": "--every"}


def refuse_useless(args: argparse.Namespace) -> None:
    """Reject an option that the probe would ignore.

    Raises:
        UsageError: the message names the option and the probes that it applies to.
    """
    takes = PROBES[args.name].one_shot.takes
    for option in _CHECKED:
        if getattr(args, option) is not None and option not in takes:
            fitting = ", ".join(name for name, probe in PROBES.items() if option in probe.one_shot.takes)
            raise UsageError(
                f"--{option.replace('_', '-')}: does not apply to the {args.name} probe (only to {fitting})"
            )


def settings_of(args: argparse.Namespace) -> ProbesSettings:
    """Return the settings of the requested probe.

    Raises:
        UsageError: the message names the invalid option.
    """
    shot = PROBES[args.name].one_shot
    own: dict[str, Any] = dict(shot.settings)
    if shot.every:
        own["interval"] = shot.every if args.every is None else args.every
    if "rate" in shot.takes:
        own["rate"] = RATE if args.rate is None else args.rate
    if args.payload is not None:
        own["payload_bytes"] = args.payload
    if args.name == confirm.PROBE.name:
        own["control_rate"] = own["rate"]
    wanted = args.stream or args.queue_type
    if wanted:
        own["streams" if args.name == confirm.PROBE.name else "queue_types"] = tuple(dict.fromkeys(wanted))
    try:
        return ProbesSettings.model_validate({"enabled": (args.name,), "prefix": args.prefix, args.name: own})
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][-1])
        raise UsageError(f"{_KEYS.get(key, key)}: {first['msg'].lower()}") from None
