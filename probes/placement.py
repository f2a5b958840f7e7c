"""Scheduling and cores of the probe process, so that busy neighbours on a small machine do not delay its clock."""

import os

from probes.settings import ProbesSettings


def place(settings: ProbesSettings) -> list[str]:
    """Apply `priority`, `realtime` and `cores` to this process and the threads that it starts later.

    Returns:
        What the system refused, as phrases; measurements go on without it.
    """
    refused = []
    if settings.priority is not None:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, settings.priority)
        except OSError as error:
            refused.append(f"priority {settings.priority} ({_reason(error)})")
    if settings.realtime:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except OSError as error:
            refused.append(f"real-time scheduling ({_reason(error)})")
    if settings.cores:
        try:
            os.sched_setaffinity(0, settings.cores)
        except OSError as error:
            refused.append(f"cores {', '.join(map(str, settings.cores))} ({_reason(error)})")
    return refused


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown error").lower()
