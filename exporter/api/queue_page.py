"""The document of `/api/v1/queue`: one queue with its recent series, its baselines and its ledger. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ackscope.baselines import Band, Baselines, NoBand, NotYet
from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.ledger import ledger, may_settle_unseen
from diagnosis.series import life, span
from diagnosis.text import no_band_text
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from diagnosis.window import Series, Window
from exporter.api.object_series import queue_lines
from exporter.api.sparkline_series import by_details_time, queue_series

Document = dict[str, Any]

BANDS = {
    "publish": "published",
    "deliver": "delivered",
    "ack": "acked",
    "redeliver": "redelivered",
    "ready": "ready",
    "unacked": "unacked",
}
"""Series of a queue -> measure of the table `baselines`."""

NOT_READ, STREAM, FEW_READINGS, UNSEEN = "not_read", "stream", "few_readings", "settles_unseen"
"""Reasons why there is no ledger. `UNSEEN`: a client uses a protocol whose acknowledgements the broker does not count
per queue.
"""

_SHOWN_ELSEWHERE = frozenset({"queue-type"})


def queue_document(
    window: Window, vhost: str, name: str, now: Instant, baselines: Baselines | None, thresholds: Thresholds
) -> Document:
    """Return what the exporter knows of one queue from its recent readings.

    Returns:
        `{"now", "cluster", "vhost", "name", "known", "settings", "lines", "usual", "ledger"}`. `known` is false if the
        latest list does not contain the queue. `settings` are its policies, and what they or its arguments set
        (`{"policy", "operator_policy", "set": [{"name", "value", "by"}]}`); null if unknown. `lines` are those of
        `/api/v1/trends`; `usual` has a band or a reason for each series (`{"low", "middle", "high", "scope",
        "values"}` or `{"because"}`). `ledger` is the balance of messages (`diagnosis.ledger.Ledger`) with `seconds`
        that it covers, or has the reason code in `because`.
    """
    series = queue_series(window, vhost, name)
    return {
        "now": now.iso(),
        "cluster": window.cluster,
        "vhost": vhost,
        "name": name,
        "known": bool(series),
        "settings": _settings(series),
        "lines": queue_lines(series, now),
        "usual": _usual(baselines, vhost, name, now, thresholds),
        "ledger": _ledger(View(window, (), now, thresholds), series),
    }


def _settings(series: Series[Queue]) -> Document | None:
    """What is set, and whether an argument of the queue or a policy sets the value that applies."""
    queue = series[-1].value if series else None
    if queue is None or not queue.settings_known:
        return None
    arguments, policy = queue.arguments or {}, queue.effective_policy or {}
    found = []
    for name in sorted({*(each.removeprefix("x-") for each in arguments), *policy} - _SHOWN_ELSEWHERE):
        argument, value = arguments.get(f"x-{name}", arguments.get(name)), queue.setting(name)
        value = argument if value is None else value
        by = "policy" if argument is None or (name in policy and value != argument) else "argument"
        found.append({"name": name, "value": value, "by": by})
    return {"policy": queue.policy, "operator_policy": queue.operator_policy, "set": found}


def _usual(
    baselines: Baselines | None, vhost: str, name: str, now: Instant, thresholds: Thresholds
) -> Mapping[str, Document]:
    found: dict[str, Document] = {}
    for series, measure in BANDS.items():
        band: Band | NotYet = NotYet(NoBand.NO_HISTORY_READ)
        if baselines is not None and baselines.made_at is None:
            band = NotYet(NoBand.NO_BANDS)
        elif baselines is not None:
            outdated = baselines.outdated(now.wall, thresholds.usual.oldest)
            band = outdated or baselines.of("queue", vhost, name, measure)
        found[series] = asdict(band) if isinstance(band, Band) else {"because": no_band_text(band)}
    return found


def _ledger(view: View, series: Series[Queue]) -> Document:
    if not series:
        return {"because": NOT_READ}
    queue = series[-1].value
    if queue.type == "stream":
        return {"because": STREAM}
    if may_settle_unseen(view, queue):
        return {"because": UNSEEN}
    history = life(by_details_time(series))
    found = ledger(history, skew=view.limits(queue).queues.loss_skew)
    if found is None:
        return {"because": FEW_READINGS}
    proven = {"proven_discarded": found.proven_discarded, "proven_vanished": found.proven_vanished}
    return {"seconds": span(history), **asdict(found), **proven, "because": None}
