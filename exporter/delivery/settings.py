"""Settings of delivery: who gets which findings, how, and when."""

import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, SecretStr, field_validator, model_validator

from ackscope.errors import AckscopeError
from ackscope.findings import Severity
from ackscope.settings import Seconds, Settings, secret

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
_TIME = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DELIVERED = (Severity.CRITICAL, Severity.WARNING)
"""Severities that are delivered unless a route says otherwise."""


class QuietSettings(Settings):
    """Hours in which only urgent findings are delivered; the others wait until the end.

    Attributes:
        start: begin, such as `22:00`.
        end: end, such as `07:00`; if it is not after the start, it is on the next day.
        days: days on which the hours begin.
        timezone: name of a time zone, such as `Europe/Berlin`.
        let_through: severities that are delivered anyway.
    """

    start: str
    end: str
    days: tuple[Day, ...] = DAYS
    timezone: str = "UTC"
    let_through: tuple[Severity, ...] = (Severity.CRITICAL,)

    @field_validator("start", "end")
    @classmethod
    def _is_a_time(cls, value: str) -> str:
        if not _TIME.fullmatch(value):
            raise ValueError(f"invalid time {value!r}; write it in quotes, as in '22:00'")
        return value

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"unknown time zone {value!r}; write UTC or a name such as Europe/Berlin") from None
        return value

    def holds(self, severity: Severity, wall: float) -> bool:
        """Whether a finding of this severity has to wait at `wall`, seconds since 1970."""
        if severity in self.let_through:
            return False
        local = datetime.fromtimestamp(wall, UTC).astimezone(ZoneInfo(self.timezone))
        clock, over_midnight = local.strftime("%H:%M"), self.end <= self.start
        if not over_midnight:
            return self.start <= clock < self.end and DAYS[local.weekday()] in self.days
        yesterday = DAYS[(local - timedelta(days=1)).weekday()]
        return (clock >= self.start and DAYS[local.weekday()] in self.days) or (
            clock < self.end and yesterday in self.days
        )


class AlertmanagerSettings(Settings):
    """An Alertmanager, through its API v2. Its silences mute findings.

    Attributes:
        url: address, such as `http://alertmanager:9093`, with its path prefix if it has one.
        username: for basic auth.
        password: for basic auth.
        password_file: file whose first line is the password; instead of `password`.
        token_file: file whose first line is a bearer token.
        ca_file: CA certificates to trust instead of the system's.
        refresh: how often the alerts are sent again and the silences are read. Alertmanager resolves an alert that is
            not sent for five minutes, or for four of these intervals if that is longer.
        labels: further labels of every alert.
    """

    url: str
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    refresh: Annotated[Seconds, Field(ge=1, le=3600)] = 30.0
    labels: dict[str, str] = Field(default={})

    @field_validator("url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        return _http(value, "http://alertmanager:9093").rstrip("/")

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _LABEL.fullmatch(name):
                raise ValueError(f"invalid label name {name!r}; use letters, digits and underscore")
        return value

    @property
    def address(self) -> str:
        """What identifies the destination."""
        return self.url

    def secrets(self) -> tuple[str | None, str | None]:
        """Password and token.

        Raises:
            ConfigError: a file cannot be read.
        """
        return (
            secret(self.password, self.password_file, "password_file"),
            secret(None, self.token_file, "token_file"),
        )


class WebhookSettings(Settings):
    """An address that gets each message as a JSON document (docs/delivery.md).

    Attributes:
        url: address; it is treated as a secret.
        url_file: file whose first line is the address; instead of `url`.
        secret: key of the HMAC-SHA256 signature in the header `X-Ackscope-Signature`.
        secret_file: file whose first line is that key; instead of `secret`.
        token_file: file whose first line is a bearer token.
        ca_file: CA certificates to trust instead of the system's.
    """

    url: SecretStr | None = None
    url_file: Path | None = None
    secret: SecretStr | None = None
    secret_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def address(self) -> str:
        """What identifies the destination."""
        return self.url.get_secret_value() if self.url else str(self.url_file)

    def target(self) -> str:
        """The URL.

        Raises:
            ConfigError: a file cannot be read.
            ValueError: it is not a URL.
        """
        if (self.url is None) == (self.url_file is None):
            raise ValueError("set url or url_file, one of them")
        return _http(
            secret(self.url, self.url_file, "url_file") or "", "https://hooks.example/ackscope", secret_url=True
        )

    def secrets(self) -> tuple[str | None, str | None]:
        """Key of the signature and token.

        Raises:
            ConfigError: a file cannot be read.
        """
        return (secret(self.secret, self.secret_file, "secret_file"), secret(None, self.token_file, "token_file"))


class AppriseSettings(Settings):
    """Addresses of Apprise: Slack, PagerDuty, mail and about a hundred other services. Needs `ackscope[notify]`.

    Attributes:
        urls: addresses, such as `mailtos://user:password@example.com`; they are treated as secrets.
        urls_file: file with one address per line; instead of `urls`.
    """

    urls: tuple[SecretStr, ...] = ()
    urls_file: Path | None = None

    @property
    def address(self) -> str:
        """What identifies the destination."""
        return "\n".join(url.get_secret_value() for url in self.urls) or str(self.urls_file)

    def targets(self) -> tuple[str, ...]:
        """The addresses.

        Raises:
            ConfigError: the file cannot be read.
            ValueError: there are none.
        """
        if bool(self.urls) == (self.urls_file is not None):
            raise ValueError("set urls or urls_file, one of them")
        if self.urls_file is None:
            return tuple(url.get_secret_value() for url in self.urls)
        secret(None, self.urls_file, "urls_file")
        lines = (line.strip() for line in self.urls_file.read_text().splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))


class ReceiverSettings(Settings):
    """One receiver: `alertmanager`, `webhook` or `apprise`.

    Attributes:
        repeat: how often a finding that lasts is sent again; 0 never. Alertmanager has its own `repeat_interval`.
        quiet: hours in which only urgent findings are delivered: `start`, `end`, `days`, `timezone`, `let_through`.
    """

    alertmanager: AlertmanagerSettings | None = None
    webhook: WebhookSettings | None = None
    apprise: AppriseSettings | None = None
    repeat: Annotated[Seconds, Field(ge=0)] = 14400.0
    quiet: tuple[QuietSettings, ...] = ()

    @model_validator(mode="after")
    def _has_one_usable_destination(self) -> Self:
        if sum(it is not None for it in (self.alertmanager, self.webhook, self.apprise)) != 1:
            raise ValueError("set one of alertmanager, webhook and apprise")
        if 0 < self.repeat < 60:
            raise ValueError("repeat: must be at least 60 s, or 0 for never")
        try:
            check_destination(self)
        except (AckscopeError, ValueError) as error:
            raise ValueError(f"{self.kind}: {error}") from None
        return self

    @property
    def kind(self) -> str:
        """The kind of the destination."""
        return next(name for name in ("alertmanager", "webhook", "apprise") if getattr(self, name) is not None)

    @property
    def destination(self) -> AlertmanagerSettings | WebhookSettings | AppriseSettings:
        """The settings of the destination."""
        chosen = self.alertmanager or self.webhook or self.apprise
        assert chosen is not None  # noqa: S101  validated above
        return chosen

    def holds(self, severity: Severity, wall: float) -> bool:
        """Whether a finding of this severity has to wait for the end of quiet hours."""
        return any(hours.holds(severity, wall) for hours in self.quiet)


class RouteSettings(Settings):
    """Findings that a receiver gets. Patterns have `*` and `?`; a finding that matches several routes goes to all.

    Attributes:
        receiver: name of the receiver.
        clusters: patterns of names of clusters.
        vhosts: patterns of virtual hosts: of the subject, or of what follows from the finding.
        rules: patterns of rules.
        severities: severities, those of what follows from the finding included.
    """

    receiver: str
    clusters: tuple[str, ...] = ("*",)
    vhosts: tuple[str, ...] = ("*",)
    rules: tuple[str, ...] = ("*",)
    severities: tuple[Severity, ...] = DELIVERED

    def matches(self, cluster: str, rule: str, vhosts: frozenset[str], severity: Severity) -> bool:
        """Whether a finding is for the receiver; `vhosts` has "" for a subject outside of virtual hosts."""
        return (
            severity in self.severities
            and _any(cluster, self.clusters)
            and _any(rule, self.rules)
            and any(_any(vhost, self.vhosts) for vhost in vhosts)
        )


class FindingDeliverySettings(Settings):
    """Delivery of findings. Nothing is delivered without a receiver.

    Attributes:
        directory: where it is stored what was delivered. Without it, a restart delivers again what is present, and
            forgets what was waiting.
        external_url: address of the exporter in messages, for links to runbooks.
        receivers: name -> destination.
        routes: which receiver gets which findings: mappings of `receiver`, and optionally `clusters`, `vhosts`,
            `rules`, `severities`. Without routes, every receiver gets all critical findings and warnings.
        settle: after a restart, how long a delivered finding has to be absent until it is reported as resolved:
            diagnosis needs some time to find it again.
    """

    directory: Path | None = None
    external_url: str | None = None
    receivers: dict[str, ReceiverSettings] = Field(default={})
    routes: tuple[RouteSettings, ...] = ()
    settle: Annotated[Seconds, Field(ge=0)] = 600.0

    @field_validator("external_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        return None if value is None else _http(value, "https://ackscope.example").rstrip("/")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name in self.receivers:
            if not _NAME.fullmatch(name):
                raise ValueError(f"receivers: invalid name {name!r}; use letters, digits, dot, dash and underscore")
        for route in self.routes:
            if route.receiver not in self.receivers:
                known = ", ".join(self.receivers) or "none"
                raise ValueError(f"routes: unknown receiver {route.receiver!r}; known: {known}")
        without = self.receivers.keys() - {route.receiver for route in self.routes}
        if self.routes and without:
            raise ValueError(f"routes: no route leads to {', '.join(sorted(without))}; add one, or remove the receiver")
        return self

    def routes_to(self, receiver: str) -> tuple[RouteSettings, ...]:
        """The routes that lead to a receiver."""
        return tuple(route for route in self.routes if route.receiver == receiver) or (
            RouteSettings(receiver=receiver),
        )


def check_destination(settings: ReceiverSettings) -> None:
    """Check that addresses and secrets are usable.

    Raises:
        ConfigError: a file cannot be read.
        MissingPart: Apprise is not installed.
        ValueError: an address is wrong; the message does not contain it.
    """
    if (it := settings.alertmanager) is not None:
        if it.password is not None and it.password_file is not None:
            raise ValueError("both password and password_file are set; keep one")
        it.secrets()
    elif (hook := settings.webhook) is not None:
        if hook.secret is not None and hook.secret_file is not None:
            raise ValueError("both secret and secret_file are set; keep one")
        hook.target()
        hook.secrets()
    elif (several := settings.apprise) is not None:
        # Imported only if used: Apprise is an extra.
        from exporter.delivery.receivers.apprise import load_targets  # noqa: PLC0415  see above

        load_targets(several.targets())
    authorities = getattr(settings.destination, "ca_file", None)
    if authorities is not None and not authorities.is_file():
        raise ValueError(f"ca_file: {authorities} is not a file of PEM certificates")


def _http(text: str, example: str, *, secret_url: bool = False) -> str:
    """An HTTP URL without credentials. The message about a secret one does not contain it.

    Raises:
        ValueError: it is something else.
    """
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:
        shown = "url: " if secret_url else f"{text!r} is "
        raise ValueError(f"{shown}not an HTTP address, expected one like {example}")
    if parts.username is not None and not secret_url:
        raise ValueError("has credentials; use username and password_file")
    return text.strip()


def _any(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
