"""Client of the Kubernetes API: lists, watches and secrets, read with the token of a service account."""

import base64
import binascii
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import orjson
import requests
from pydantic import SecretStr

from ackscope.errors import AckscopeError
from exporter.broker.credentials import credentials_from
from exporter.broker.http_errors import map_transport_error
from exporter.broker.session import open_session, request_timeout
from exporter.discovery.objects import Login, SecretPlace
from exporter.discovery.settings import KubernetesSettings

MAX_BYTES = 64 * 1024 * 1024
"""Largest page of a list; the API server limits an object to 1.5 MiB."""
MAX_EVENT_BYTES = 4 * 1024 * 1024
GONE = 410
"""The version to watch from is too old: list again."""
_GRACE_SECONDS = 10.0

Document = dict[str, Any]


class KubernetesError(AckscopeError):
    """A request to the Kubernetes API failed; the message names host and path.

    Attributes:
        status: HTTP status, 200 for an answer that cannot be used; None if there was no whole answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class KubernetesApi:
    """Client of one Kubernetes API. One request at a time: a client belongs to one thread.

    Raises:
        ConfigError: the token or the certificates cannot be read.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        access = settings.access()
        self._address = access.address("discovery.kubernetes.server")
        self._timeout = access.timeout
        self._credentials = credentials_from(access, "discovery.kubernetes")
        self._session = open_session(access, "discovery.kubernetes")

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Document:
        """Return the document at a path.

        Raises:
            KubernetesError: no answer, another status than 200, or no JSON object.
        """
        body = bytearray()
        for chunk in self._chunks(path, params or {}, self._timeout):
            body += chunk
            if len(body) > MAX_BYTES:
                raise KubernetesError(
                    f"{self._address.where}{path}: the answer is larger than {MAX_BYTES // 2**20} MiB"
                )
        return self._document(path, body)

    def watch(
        self, path: str, params: Mapping[str, str | int], seconds: int, accepted: Callable[[], None]
    ) -> Iterator[Document]:
        """Yield the events of a watch, as they come, until the server ends it.

        Args:
            path: the list to watch.
            params: query parameters.
            seconds: after which the server ends the watch.
            accepted: called when the server has begun to answer; the first event may come much later.

        Raises:
            KubernetesError: as in `get`, also in the midst; 410 if the version is too old.
        """
        query = {**params, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        rest = bytearray()
        for chunk in self._chunks(path, query, seconds + _GRACE_SECONDS, accepted):
            rest += chunk
            *lines, last = rest.split(b"\n")
            rest = bytearray(last)
            if len(rest) > MAX_EVENT_BYTES:
                raise KubernetesError(f"{self._address.where}{path}: an event is too large", HTTPStatus.OK)
            for line in lines:
                event = self._document(path, line)
                if event.get("type") == "ERROR":
                    raise self._error(path, event.get("object"), None)
                yield event

    def login(self, place: SecretPlace) -> Login:
        """Return user name and password in a secret.

        Raises:
            KubernetesError: the secret cannot be read, or lacks a key.
        """
        path = f"/api/v1/namespaces/{place.namespace}/secrets/{place.name}"
        data = self.get(path).get("data")
        words = []
        for key in (place.username, place.password):
            try:
                words.append(base64.b64decode(data[key], validate=True).decode())  # type: ignore[index]  # caught
            except (KeyError, TypeError, ValueError, binascii.Error):
                text = f"{self._address.where}{path}: the secret has no text with the key {key!r}"
                raise KubernetesError(text, HTTPStatus.OK) from None
        return Login(words[0], SecretStr(words[1]))

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def _chunks(
        self,
        path: str,
        params: Mapping[str, str | int],
        seconds: float,
        accepted: Callable[[], None] = lambda: None,
    ) -> Iterator[bytes]:
        deadline = time.monotonic() + seconds
        try:
            header = self._credentials.header()
            answer = self._send(path, params, header, seconds)
            if answer.status_code == 401 and self._credentials.renew(header):
                answer.close()
                answer = self._send(path, params, self._credentials.header(), max(1.0, deadline - time.monotonic()))
            with answer:
                if answer.status_code != 200:
                    body = next(answer.iter_content(65536), b"")
                    raise self._error(path, _loads(body), answer.status_code)
                accepted()
                yield from answer.iter_content(65536)
        except requests.RequestException as error:
            mapped = map_transport_error(self._address, path, error, seconds, "the Kubernetes API")
            raise KubernetesError(str(mapped)) from None

    def _send(self, path: str, params: Mapping[str, str | int], header: str, seconds: float) -> requests.Response:
        return self._session.get(
            self._address.url + path,
            params=params,
            headers={"Authorization": header, "Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=request_timeout(seconds),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
            allow_redirects=False,
            stream=True,
        )

    def _document(self, path: str, body: bytes | bytearray) -> Document:
        document = _loads(body)
        if not isinstance(document, dict):
            text = f"{self._address.where}{path}: not a JSON object; is this the Kubernetes API?"
            raise KubernetesError(text, HTTPStatus.OK)
        return document

    def _error(self, path: str, document: Any, status: int | None) -> KubernetesError:
        """The error for a `Status` object, which has the API server's own words: who may not do what, where."""
        answer = document if isinstance(document, dict) else {}
        code, message = answer.get("code"), answer.get("message")
        status = status if status is not None else code if isinstance(code, int) else None
        reason = f" ({message[:300]})" if isinstance(message, str) and message else ""
        return KubernetesError(f"{self._address.where}{path}: {status or 'error'}{reason}", status)


def _loads(body: bytes | bytearray) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
