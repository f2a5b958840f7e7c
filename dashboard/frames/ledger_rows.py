"""The ledger of one queue as rows: in, out, stored, lost. Pure."""

from collections.abc import Mapping

from ackscope import format as fmt
from dashboard.data.queue_reports import QueueLedger

_UNKNOWN: Mapping[str, str] = {
    "not_read": "the queue has not been read yet",
    "stream": "the messages of a stream stay after they were consumed",
    "few_readings": "it needs two readings of the counters",
    "settles_unseen": "a client uses a protocol whose acknowledgements the broker does not count per queue",
}


def reason(found: QueueLedger) -> str | None:
    """Why there is no ledger; None if there is one."""
    return None if found.because is None else _UNKNOWN.get(found.because, found.because)


def rows(found: QueueLedger) -> list[dict[str, str]]:
    """The entries of a ledger: `Entry`, `Messages`, `Meaning`."""
    entries = (
        ("In: published", found.arrived, ""),
        ("Out: acknowledged", found.acked, ""),
        ("Out: automatic ack", found.auto, "counts as acknowledged on delivery"),
        ("Stored: change", found.stored, "ready and unacked"),
        ("Lost after delivery", found.proven_discarded, _error(found.discarded, found.proven_discarded)),
        ("Lost before delivery", found.proven_vanished, _error(found.vanished, found.proven_vanished)),
        ("Delivered again", found.redelivered, "redeliveries, no new messages"),
    )
    return [
        {"Entry": name, "Messages": _signed(value) if "change" in name else fmt.number(value), "Note": note}
        for name, value, note in entries
        if value is not None and (value or not name.startswith("Out: automatic"))
    ]


def _signed(value: int) -> str:
    return f"+{value:,}" if value > 0 else f"{value:,}"


def _error(counted: int | None, proven: int | None) -> str:
    """What is missing by count, but may be the delay between counters."""
    unsure = (counted or 0) - (proven or 0)
    notes = ["neither acknowledged nor in the queue"] if proven else []
    notes += [f"up to {fmt.number(unsure)}{' more' if proven else ''}, not certain"] if unsure else []
    return "; ".join(notes)
