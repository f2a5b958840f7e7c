"""Reads the HTTP API of an exporter."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests

from ackscope.errors import BadAnswer, Refused, Unreachable, UsageError

_SECONDS = (5.0, 60.0)


class ExporterApi:
    """An exporter.

    Args:
        url: its address, without credentials.
        login: user and password; None without.
        ca_file: CA certificates to trust instead of the system's.
    """

    def __init__(self, url: str, login: tuple[str, str] | None = None, ca_file: Path | None = None) -> None:
        self.url = url.rstrip("/")
        self._session = requests.Session()
        self._session.auth = login
        self._session.verify = True if ca_file is None else str(ca_file)

    def document(self, path: str, **query: str) -> dict[str, Any]:
        """A JSON document of the API.

        Raises:
            Unreachable: no connection.
            Refused: it needs a login.
            UsageError: the exporter knows no such object; its text says which there are.
            BadAnswer: the response is not that of an exporter.
        """
        try:
            found = self._get(path, query).json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise BadAnswer(f"{self.url}: the response is not that of an exporter")
        return found

    def content(self, path: str, **query: str) -> bytes:
        """The content of a path; errors as in `document`."""
        return self._get(path, query).content

    def _get(self, path: str, query: Mapping[str, str]) -> requests.Response:
        try:
            response = self._session.get(
                f"{self.url}{path}", params=dict(query), timeout=_SECONDS, allow_redirects=False
            )
        except requests.RequestException:
            raise Unreachable(f"{self.url}: no connection; is the exporter running?") from None
        if response.status_code in {401, 403}:
            raise Refused(f"{self.url}: the login is refused; set --username and --password-file")
        if response.status_code == 400:
            raise UsageError(response.text.strip()[:500])
        if not response.ok:
            raise BadAnswer(f"{self.url}{path}: status {response.status_code}, {response.text.strip()[:200]}")
        return response
