"""The file of `--login`: the OpenID Connect provider, and who gets access. Secrets are in separate files."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from ackscope.errors import ConfigError
from ackscope.log import get_logger
from ackscope.settings import Seconds, Settings, load, secret
from dashboard.auth.access_rules import AccessRules

_LOG = get_logger(__name__)

_CALLBACK = "oauth2callback"
_MIN_SECRET_LENGTH = 32
_COOKIE_SECONDS = 30 * 86400  # fixed by Streamlit
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class AllowList(Settings):
    """Who gets access; one match is enough.

    Attributes:
        emails: e-mail addresses.
        domains: domains after the @ of an address.
        claims: name of a claim of the ID token -> accepted values; the claim must be or contain one of them.
    """

    emails: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    claims: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @field_validator("emails")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if text.count("@") != 1 or not all(text.split("@")) or " " in text:
                raise ValueError(f"{text!r} is not an e-mail address; to allow everybody of a company, use domains")
        return tuple(text.lower() for text in value)

    @field_validator("domains")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not text or set(text) & set("@*/ "):
                raise ValueError(f"{text!r} is not a domain; give the part after the @, such as example.org")
        return tuple(text.lower() for text in value)

    @model_validator(mode="after")
    def _not_empty(self) -> "AllowList":
        if not (self.emails or self.domains or any(self.claims.values())):
            raise ValueError("nobody has access; give emails, domains or claims, such as emails: [ann@example.org]")
        return self


class LoginFile(Settings):
    """The schema of the file.

    Attributes:
        metadata_url: the provider's discovery document.
        client_id: client ID of the dashboard at the provider.
        client_secret_file: file with the client secret on its first line.
        redirect_uri: where the provider sends people back to, as registered there.
        cookie_secret_file: file whose first line signs cookies; created if missing. None: a new secret at each start.
        scope: scopes to request; a claim such as groups often needs one more.
        session: seconds until people have to sign in again.
    """

    metadata_url: str
    client_id: str = Field(min_length=1)
    client_secret_file: Path
    redirect_uri: str
    cookie_secret_file: Path | None = None
    scope: str = "openid email profile"
    session: Seconds = 12 * 3600.0
    allow: AllowList

    @field_validator("metadata_url")
    @classmethod
    def _well_known(cls, value: str) -> str:
        if "/.well-known/" not in _address(value).path:
            raise ValueError("must be the URL that ends in /.well-known/openid-configuration")
        return value

    @field_validator("redirect_uri")
    @classmethod
    def _callback(cls, value: str) -> str:
        parts = _address(value)
        if not parts.path.endswith(f"/{_CALLBACK}") or parts.query or parts.fragment:
            raise ValueError(f"must end in /{_CALLBACK}, the callback path of the dashboard")
        return value

    @field_validator("session")
    @classmethod
    def _within_the_cookie(cls, value: float) -> float:
        if not 0 < value <= _COOKIE_SECONDS:
            raise ValueError("must be more than 0 and at most 30d, the lifetime of the cookie")
        return value

    @field_validator("scope")
    @classmethod
    def _openid(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("must contain openid; without it the provider does not identify people")
        return value


@dataclass(frozen=True, slots=True)
class LoginConfig:
    """The login configuration of the server; its secrets are never printed."""

    rules: AccessRules
    metadata_url: str
    client_id: str
    redirect_uri: str
    scope: str
    client_secret: str = field(repr=False)
    cookie_secret: str = field(repr=False)

    def secrets(self) -> Mapping[str, Any]:
        """The secrets in the layout of Streamlit's `st.login`."""
        return {
            "auth": {
                "redirect_uri": self.redirect_uri,
                "cookie_secret": self.cookie_secret,
                "client_id": self.client_id,
                "client_secret": self.client_secret,
                "server_metadata_url": self.metadata_url,
                "client_kwargs": {"scope": self.scope},
            }
        }


def read(path: Path, base: str) -> LoginConfig:
    """Read the file and the secrets that it names; relative paths start at its folder.

    Args:
        path: the file.
        base: the path below which the dashboard is served, without slashes at its ends.

    Raises:
        ConfigError: one line: file, key, what to do instead; never a secret.
    """
    # The environment overrides nothing here: who gets access is defined in one place.
    file = load(LoginFile, path, {})
    callback_path = f"/{base}/{_CALLBACK}" if base else f"/{_CALLBACK}"
    if urlsplit(file.redirect_uri).path != callback_path:
        raise ConfigError(
            f"{path}: redirect_uri: its path must be {callback_path}, because the dashboard is served below /{base}; "
            "change it here and at the provider, or change --base-path"
        )
    return LoginConfig(
        rules=AccessRules(file.allow.emails, file.allow.domains, file.allow.claims, file.session),
        metadata_url=file.metadata_url,
        client_id=file.client_id,
        redirect_uri=file.redirect_uri,
        scope=file.scope,
        client_secret=_secret(path.parent / file.client_secret_file, f"{path}: client_secret_file"),
        cookie_secret=_cookie_secret(
            None if file.cookie_secret_file is None else path.parent / file.cookie_secret_file,
            f"{path}: cookie_secret_file",
        ),
    )


def _address(text: str) -> SplitResult:
    """A URL that is safe to send secrets to.

    Raises:
        ValueError: the text is not such a URL.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ValueError("is not a URL; expected https://host/...")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError("must be https, because credentials are sent to it; http is for loopback only")
    return parts


def _cookie_secret(path: Path | None, what: str) -> str:
    """The secret of the file, which is created with mode 600 if it is missing."""
    if path is None:
        return secrets.token_hex(_MIN_SECRET_LENGTH)
    if not path.exists():
        created = secrets.token_hex(_MIN_SECRET_LENGTH)
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "w") as file:
                file.write(f"{created}\n")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(
                f"{what}: {path} cannot be created ({reason}); choose a folder that this user can write to"
            ) from None
        return created
    existing = _secret(path, what)
    if len(existing) < _MIN_SECRET_LENGTH:
        raise ConfigError(
            f"{what}: {path} has fewer than {_MIN_SECRET_LENGTH} characters; delete it, and a new one is created"
        )
    return existing


def _secret(path: Path, what: str) -> str:
    try:
        text = (secret(None, path, what) or "").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: {path} is not a text file; write the secret on its first line") from None
    if not text:
        raise ConfigError(f"{what}: {path} is empty; write the secret on its first line")
    if path.stat().st_mode & 0o004:
        _LOG.warning("every user of this machine can read this secret; run chmod o-r on the file", file=str(path))
    return text
