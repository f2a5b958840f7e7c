"""Makes users, virtual hosts and permissions through the management API. Only `ackscope init` uses it, with consent."""

from collections.abc import Mapping
from typing import Any

import orjson
import requests

from exporter.broker.credentials import credentials_from
from exporter.broker.http_errors import map_status_error, map_transport_error
from exporter.broker.session import open_session, request_timeout
from exporter.broker.settings import ManagementSettings


class BrokerAdmin:
    """The writing side of one management API.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be used.
    """

    def __init__(self, settings: ManagementSettings) -> None:
        self._address, self._timeout = settings.address(), settings.timeout
        self._credentials = credentials_from(settings)
        self._session = open_session(settings, "management")

    def put(self, path: str, document: Mapping[str, Any]) -> None:
        """Create or replace what is at a path.

        Raises:
            BrokerError: it was not made.
        """
        headers = {"Authorization": self._credentials.header(), "Content-Type": "application/json"}
        try:
            answer = self._session.put(
                f"{self._address.scheme}://{self._address.where}{self._address.path}{path}",
                data=orjson.dumps(document),
                headers=headers,
                timeout=request_timeout(self._timeout),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise map_transport_error(self._address, path, error, self._timeout) from None
        if answer.status_code not in {200, 201, 204}:
            user = self._address.username
            raise map_status_error(self._address, path, answer.status_code, answer.headers, answer.content, user)
