"""Keeps the `RabbitmqCluster` objects of a namespace in memory: list, watch, and list again where the watch breaks."""

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from ackscope.errors import AckscopeError
from ackscope.log import get_logger
from exporter.discovery.api import GONE, Document, KubernetesApi, KubernetesError
from exporter.discovery.objects import ObjectKey, RabbitmqObject, parse_object
from exporter.discovery.settings import KubernetesSettings

log = get_logger(__name__)

MAX_OBJECTS = 1000
"""Objects of one watch; what exceeds them is left out."""
_PAGE = 500
_WATCH_SECONDS = 60
"""After this time the server ends the watch, so that a dead connection is noticed."""
_BACKOFF = (1.0, 60.0)
"""Shortest and longest pause after a failure, in seconds."""


class ObjectWatch:
    """Objects of one namespace, or of all. A thread of its own.

    Args:
        settings: how to reach the Kubernetes API, and which objects.
        namespace: the namespace; "" means all.
        changed: called from the thread after objects or the state have changed.

    Attributes:
        objects: latest objects. Replaced as a whole; what was known stays while the API does not answer.
        error: why the last request failed; None if it succeeded.
        failures: number of failed requests.
        listed: whether there has been a complete list.
        succeeded: monotonic time of the last success in seconds; None before the first.
    """

    def __init__(self, settings: KubernetesSettings, namespace: str, changed: Callable[[], None]) -> None:
        self._settings, self._changed = settings, changed
        inside = f"/namespaces/{namespace}" if namespace else ""
        self._path = f"/apis/rabbitmq.com/v1beta1{inside}/rabbitmqclusters"
        self._params = {"labelSelector": settings.label_selector} if settings.label_selector else {}
        self._stop = threading.Event()
        self.objects: dict[ObjectKey, RabbitmqObject] = {}
        self.error: str | None = None
        self.failures = 0
        self.listed = False
        self.succeeded: float | None = None
        self._pause = _BACKOFF[0]
        self._version = ""
        # Not joined at the end: it may wait for an event.
        self._thread = threading.Thread(target=self._run, name=f"discovery-{namespace or 'all'}", daemon=True)

    @property
    def tried(self) -> bool:
        """Whether the first list was answered or failed."""
        return self.listed or self.failures > 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end after its present request; it reports nothing more."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                api = KubernetesApi(self._settings)
                try:
                    while not self._stop.is_set():
                        if not self._version:
                            self._list(api)
                        began = time.monotonic()
                        self._watch(api)
                        if time.monotonic() - began < _BACKOFF[0]:
                            # A proxy that ends each watch at once must not make us ask without a pause.
                            self._stop.wait(_BACKOFF[0])
                finally:
                    api.close()
            except AckscopeError as error:
                status = error.status if isinstance(error, KubernetesError) else None
                # Only without an answer the version remains good for another watch.
                self._version = "" if status is not None else self._version
                if status != GONE:
                    self._failed(error)
            except Exception:
                # Boundary: an object that is not as documented must not end discovery.
                self._version = ""
                log.exception("watch of objects failed because of a bug in ackscope", path=self._path)
            # With jitter: after an outage of the API server not all clients return at the same time.
            self._stop.wait(self._pause * random.uniform(0.5, 1.0))  # noqa: S311  no secret
            self._pause = min(2 * self._pause, _BACKOFF[1])

    def _failed(self, error: AckscopeError) -> None:
        if self._stop.is_set():
            return
        self.failures += 1
        self.error = str(error)
        log.warning("objects not read", path=self._path, error=self.error)
        self._changed()

    def _succeeded(self) -> None:
        self.error, self.succeeded = None, time.monotonic()

    def _list(self, api: KubernetesApi) -> None:
        """Replace the objects by those of a list, read in pages."""
        found: dict[ObjectKey, RabbitmqObject] = {}
        params: dict[str, str | int] = {**self._params, "limit": _PAGE}
        version = ""
        while True:
            document = api.get(self._path, params)
            metadata = document.get("metadata") or {}
            version = str(metadata.get("resourceVersion") or "")
            for item in document.get("items") or ():
                self._put(found, item)
            token = metadata.get("continue")
            if not token or len(found) >= MAX_OBJECTS:
                break
            params["continue"] = token
        if not version:
            raise KubernetesError(f"{self._path}: a list without version; is this the Kubernetes API?")
        self.objects, self.listed, self._version = found, True, version
        self._succeeded()
        self._changed()

    def _watch(self, api: KubernetesApi) -> None:
        """Follow the changes since the latest version until the watch ends."""
        params, accepted, any_event = {**self._params, "resourceVersion": self._version}, math.inf, False

        def succeed() -> None:
            # Not only with an event: objects that do not change have none, and bookmarks may be a minute apart.
            nonlocal accepted
            accepted = time.monotonic()
            self._succeeded()

        try:
            for event in api.watch(self._path, params, _WATCH_SECONDS, succeed):
                if self._stop.is_set():
                    break
                self._follow(event)
                any_event = True
        finally:
            if time.monotonic() - accepted >= _BACKOFF[0]:
                self._pause = _BACKOFF[0]
        self._succeeded()
        if not any_event:
            # Nor a bookmark: the version may be one that is still to come, as after etcd was restored from a backup.
            self._version = ""

    def _follow(self, event: Document) -> None:
        item, kind = event.get("object") or {}, event.get("type")
        self._succeeded()
        if kind in {"ADDED", "MODIFIED", "DELETED"}:
            objects = dict(self.objects)
            self._put(objects, item, gone=kind == "DELETED")
            self.objects = objects
            self._changed()
        # After a broken watch the next one must not repeat what is known: an object that went and came back would go
        # once more.
        self._version = str((item.get("metadata") or {}).get("resourceVersion") or self._version)

    def _put(self, objects: dict[ObjectKey, RabbitmqObject], document: Any, *, gone: bool = False) -> None:
        item = parse_object(document) if isinstance(document, dict) else None
        if item is None:
            return
        if gone:
            objects.pop(item.key, None)
        elif item.key in objects or len(objects) < MAX_OBJECTS:
            objects[item.key] = item
        else:
            log.warning("too many objects, one is left out", limit=MAX_OBJECTS, object="/".join(item.key))
