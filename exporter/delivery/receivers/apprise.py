"""Apprise: chat, mail, pagers. Needs the extra `notify`."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ackscope.errors import ConfigError, MissingPart
from ackscope.findings import Severity
from exporter.delivery.incidents import FindingIncident
from exporter.delivery.messages import DeliveryMessage
from exporter.delivery.receivers.contract import DeliveryError
from exporter.delivery.settings import AppriseSettings

try:
    import apprise
except ModuleNotFoundError:  # an extra
    apprise = None  # type: ignore[assignment]  # which makes it optional

# It logs addresses, which contain secrets, and delivery logs every failure itself.
logging.getLogger("apprise").setLevel(logging.CRITICAL)


def load_targets(urls: Sequence[str]) -> list[Any]:
    """The services of Apprise at these addresses.

    Raises:
        MissingPart: Apprise is not installed.
        ValueError: Apprise does not accept an address; the message has only its place and its scheme, no secret.
    """
    if apprise is None:
        raise MissingPart("apprise is not installed; install the extra: pip install 'ackscope[notify]'")
    if not urls:
        raise ValueError("no address; write one per line, such as mailtos://user:password@example.com")
    found = []
    for place, url in enumerate(urls, 1):
        service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
        if service is None:
            raise ValueError(f"address {place}{_why_refused(scheme(url))}")
        found.append(service)
    return found


def scheme(url: str) -> str:
    """The scheme of an address, which is not secret."""
    before, found, _ = url.partition("://")
    return f"{before}://" if found and before.isalnum() else "no scheme"


def _why_refused(service: str) -> str:
    """What is wrong with an address, by its scheme, which is not secret; continues "address 1"."""
    if service in {"http://", "https://"}:
        return f": Apprise knows no service at this {service} address; write it with the scheme of the service"
    if service.removesuffix("://") in apprise.plugins.N_MGR:
        return f": Apprise does not accept this {service} address; check its tokens"
    return f" ({service}) is not one of Apprise; see its list of services"


class AppriseReceiver:
    """Sends through Apprise. If one of several addresses fails, only that one gets the message again."""

    refresh: float | None = None

    def __init__(self, settings: AppriseSettings) -> None:
        self._settings = settings
        self._partly: tuple[str, set[str]] = ("", set())

    def deliver(self, message: DeliveryMessage) -> None:
        """Send one message.

        Raises:
            DeliveryError: an address did not accept it.
        """
        try:
            urls = self._settings.targets()
            services = load_targets(urls)
        except (ConfigError, MissingPart, ValueError) as error:
            raise DeliveryError(str(error)) from None
        if self._partly[0] != message.id:
            self._partly = (message.id, set())
        done, failed = self._partly[1], []
        for url, service in zip(urls, services, strict=True):
            if url in done:
                continue
            if service.notify(title=message.title, body=message.text, notify_type=_type(message)):
                done.add(url)
            else:
                failed.append(scheme(url))
        if failed:
            raise DeliveryError(f"not accepted by {', '.join(failed)}")
        self._partly = ("", set())

    def keep_alive(self, active: Sequence[FindingIncident], wall: float) -> None:
        """These services need no repetition."""

    def memory(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}


def _type(message: DeliveryMessage) -> str:
    if message.worst is None:
        return "success"
    return {Severity.CRITICAL: "failure", Severity.WARNING: "warning", Severity.INFO: "info"}[message.worst]
