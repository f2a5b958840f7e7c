"""Alertmanager, through its API v2. Alerts are sent again and again, as Prometheus does; its silences come back."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from urllib.parse import quote

import orjson
import requests
from pydantic import TypeAdapter, ValidationError

from ackscope.clock import iso, stamp
from ackscope.errors import ConfigError
from ackscope.findings import Severity
from ackscope.format import plural
from ackscope.reports import Step
from ackscope.triage import MAX_NAME, MAX_REASON, Triage
from exporter.broker.clock_offset import ClockOffset
from exporter.delivery.incidents import DeliveryEvent, EventKind, FindingIncident, IncidentKey
from exporter.delivery.messages import DeliveryMessage, runbook_url
from exporter.delivery.receivers.contract import DeliveryError, send
from exporter.delivery.settings import AlertmanagerSettings

ALERT, MISSED_ALERT, TEST_ALERT = "AckscopeFinding", "AckscopeMissedFindings", "AckscopeTest"
"""Values of the label `alertname`."""
LEAST_SECONDS = 300.0
"""An alert that is not sent again for this time ends by itself."""
_PER_REQUEST = 500
_STEPS = 3

Silences = Mapping[IncidentKey, Triage]
"""Finding -> the mute that a silence of Alertmanager is."""

_MEMORY: TypeAdapter[list[tuple[IncidentKey, Triage]]] = TypeAdapter(list[tuple[IncidentKey, Triage]])


class AlertmanagerReceiver:
    """Sends to one Alertmanager.

    Args:
        on_silences: gets the silenced findings after every reading.
        memory: what `memory` returned in an earlier process.
    """

    def __init__(
        self,
        settings: AlertmanagerSettings,
        external_url: str | None,
        on_silences: Callable[[Silences], None],
        memory: Mapping[str, Any],
    ) -> None:
        self._settings, self._external_url, self._on_silences = settings, external_url, on_silences
        self._session = requests.Session()
        self._clock_offset = ClockOffset()
        self.refresh: float | None = settings.refresh
        self._lasts = max(LEAST_SECONDS, 4 * settings.refresh)
        try:
            self._silences: Silences = dict(_MEMORY.validate_python(memory.get("silences", [])))
        except ValidationError:
            self._silences = {}
        on_silences(self._silences)

    def deliver(self, message: DeliveryMessage) -> None:
        """Send the alerts of one message.

        Raises:
            DeliveryError: they were not accepted.
        """
        missed, sent_at = [it for it in message.events if it.kind is EventKind.MISSED], message.sent_at
        alerts = [alert for it in message.events if it.kind is not EventKind.MISSED for alert in self._of(it, sent_at)]
        if missed:
            alerts.append(self._missed(missed, message, sent_at))
        self._post(alerts)

    def keep_alive(self, active: Sequence[FindingIncident], wall: float) -> None:
        """Send every present alert again, and read the silences.

        Raises:
            DeliveryError: Alertmanager did not accept or answer.
        """
        self._post([self._alert(it, it.severity, wall + self._lasts) for it in active])
        self._silences = self._read_silences()
        self._on_silences(self._silences)

    def memory(self) -> Mapping[str, Any]:
        """The silences: a restarted exporter must not deliver what is silenced to other receivers."""
        return {"silences": [[list(key), asdict(triage)] for key, triage in self._silences.items()]}

    def _of(self, event: DeliveryEvent, wall: float) -> Iterable[dict[str, Any]]:
        it = event.incident
        if event.kind is EventKind.TEST:
            yield {**self._alert(it, it.severity, wall + self._lasts), "labels": self._own({"alertname": TEST_ALERT})}
            return
        known = it.delivered
        if known is not None and known.severity is not it.severity and it.ended is None:
            # The severity is a label, so this is another alert for Alertmanager: the previous one ends.
            yield self._alert(it, known.severity, wall)
        ending = it.ended is not None
        severity = known.severity if ending and known is not None else it.severity
        yield self._alert(it, severity, wall if ending else wall + self._lasts)

    def _alert(self, it: FindingIncident, severity: Severity, ends: float) -> dict[str, Any]:
        brief = it.brief or {}
        steps = [str(Step(**step)) for step in brief.get("steps", [])[:_STEPS]]
        annotations = {
            "summary": brief.get("summary", it.key.rule),
            "description": brief.get("cause", ""),
            "next_step": steps[0] if steps else "",
            "steps": "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)),
            "also_explains": "\n".join(brief.get("follows", [])),
            "since": brief.get("since") or "",
            "runbook_url": runbook_url(it.key.rule, self._external_url),
        }
        return self._document(_labels(it.key, severity), annotations, it.began, ends)

    def _missed(self, events: Sequence[DeliveryEvent], message: DeliveryMessage, wall: float) -> dict[str, Any]:
        severity = min((it.incident.severity for it in events), key=lambda it: it.urgency)
        clusters = sorted({it.incident.key.cluster for it in events})
        labels = {"alertname": MISSED_ALERT, "severity": severity.value, "cluster": ", ".join(clusters)}
        number = plural(len(events), "finding")
        annotations = {
            "summary": f"{number} began and ended while Alertmanager could not be reached",
            "description": message.text,
        }
        began = min(it.incident.began for it in events)
        return self._document(labels, annotations, began, wall + self._lasts)

    def _document(
        self, labels: Mapping[str, str], annotations: Mapping[str, Any], began: float, ends: float
    ) -> dict[str, Any]:
        # By its own clock: what is to end in five minutes would be over for one that is ten minutes ahead.
        ahead = self._ahead
        document = {
            "labels": self._own(labels),
            "annotations": {name: str(text) for name, text in annotations.items() if text},
            "startsAt": iso(began + ahead),
            # To the second, and so not before the start.
            "endsAt": iso(max(ends, began) + ahead),
        }
        return {**document, "generatorURL": self._external_url} if self._external_url else document

    @property
    def _ahead(self) -> float:
        """By how many seconds the clock of Alertmanager is ahead of ours, as far as it is known."""
        return self._clock_offset.seconds or 0.0

    def _own(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {**self._settings.labels, **labels}

    def _post(self, alerts: Sequence[Mapping[str, Any]]) -> None:
        for first in range(0, len(alerts), _PER_REQUEST):
            self._request("POST", "/api/v2/alerts", orjson.dumps(alerts[first : first + _PER_REQUEST]))

    def _read_silences(self) -> Silences:
        name = quote(f'alertname="{ALERT}"')
        listed = self._json(f"/api/v2/alerts?filter={name}")
        found, known = {}, {}
        for alert in listed:
            ids, labels = alert["status"].get("silencedBy") or [], alert["labels"]
            if not ids or any(labels.get(key) != value for key, value in self._settings.labels.items()):
                continue
            for each in ids:
                if each not in known:
                    known[each] = self._json(f"/api/v2/silence/{quote(each)}")
            last = max((known[each] for each in ids), key=lambda it: str(it["endsAt"]))
            key = IncidentKey(*(labels.get(part, "") for part in IncidentKey._fields))
            found[key] = Triage(
                muted_until=iso(stamp(datetime.fromisoformat(last["endsAt"])) - self._ahead),
                muted_by=f"{last.get('createdBy') or 'somebody'} in Alertmanager"[:MAX_NAME],
                mute_reason=str(last.get("comment", ""))[:MAX_REASON],
            )
        return found

    def _json(self, path: str) -> Any:
        try:
            return self._request("GET", path).json()
        except ValueError:
            raise DeliveryError("the response is not that of an Alertmanager") from None

    def _request(self, method: str, path: str, body: bytes | None = None) -> requests.Response:
        try:
            password, token = self._settings.secrets()
        except ConfigError as error:
            raise DeliveryError(str(error)) from None
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        name, sent = self._settings.username, time.monotonic()
        response = send(
            self._session,
            method,
            f"{self._settings.url}{path}",
            body=body,
            headers=headers,
            auth=(name, password or "") if name is not None else None,
            ca_file=self._settings.ca_file,
        )
        self._clock_offset.record(response.headers, sent, time.monotonic())
        return response


def _labels(key: IncidentKey, severity: Severity) -> dict[str, str]:
    parts = {name: value for name, value in key._asdict().items() if value}
    return {"alertname": ALERT, "severity": severity.value, **parts}
