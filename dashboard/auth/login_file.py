"""The file of `--login`: which provider, and who may come in. Secrets stand in files of their own."""

import logging
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from ackscope.errors import ConfigError
from ackscope.settings import Seconds, Settings, load, secret
from dashboard.auth.access_rules import AccessRules

_LOG = logging.getLogger(__name__)

_CALLBACK = "oauth2callback"
_SHORTEST = 32
_COOKIE_SECONDS = 30 * 86400  # fixed by Streamlit
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class AllowList(Settings):
    """Who may come in; one that fits is enough.

    Attributes:
        emails: addresses.
        domains: what stands behind the @.
        claims: name of a claim of the ID token -> values, of which it must be or hold one.
    """

    emails: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    claims: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @field_validator("emails")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if text.count("@") != 1 or not all(text.split("@")) or " " in text:
                raise ValueError(f"{text!r} is no e-mail address; for everybody of a house use domains")
        return tuple(text.lower() for text in value)

    @field_validator("domains")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not text or set(text) & set("@*/ "):
                raise ValueError(f"{text!r} is no domain; write it as it stands behind the @, such as example.org")
        return tuple(text.lower() for text in value)

    @model_validator(mode="after")
    def _somebody(self) -> "AllowList":
        if not (self.emails or self.domains or any(self.claims.values())):
            raise ValueError("nobody may come in; give emails, domains or claims, such as emails: [ann@example.org]")
        return self


class LoginFile(Settings):
    """The file as it is written.

    Attributes:
        metadata_url: where the provider describes itself.
        client_id: the name under which the provider knows this page.
        client_secret_file: its first line is the secret that goes with it.
        redirect_uri: where the provider sends people back to, as it is registered there.
        cookie_secret_file: its first line signs cookies; made where it is missing. None: another one at each start.
        scope: what is asked of the provider; a claim such as groups often needs a word more.
        session: for how long signing in holds.
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
            raise ValueError("expected the address that ends in /.well-known/openid-configuration")
        return value

    @field_validator("redirect_uri")
    @classmethod
    def _callback(cls, value: str) -> str:
        parts = _address(value)
        if not parts.path.endswith(f"/{_CALLBACK}") or parts.query or parts.fragment:
            raise ValueError(f"must end in /{_CALLBACK}; that is where the page takes people back")
        return value

    @field_validator("session")
    @classmethod
    def _within_the_cookie(cls, value: float) -> float:
        if not 0 < value <= _COOKIE_SECONDS:
            raise ValueError("must be more than 0 and at most 30d, which is how long the cookie lives")
        return value

    @field_validator("scope")
    @classmethod
    def _openid(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("must hold openid; without it the provider does not say who somebody is")
        return value


@dataclass(frozen=True, slots=True)
class LoginConfig:
    """What the server needs to sign people in; its secrets never print."""

    rules: AccessRules
    metadata_url: str
    client_id: str
    redirect_uri: str
    scope: str
    client_secret: str = field(repr=False)
    cookie_secret: str = field(repr=False)

    @property
    def encrypted(self) -> bool:
        """Whether people come by https, so that cookies need not travel otherwise."""
        return self.redirect_uri.startswith("https:")

    def secrets(self) -> Mapping[str, Any]:
        """As Streamlit's `st.login` wants them."""
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
    """Read the file and the secrets that it names; paths in it are beside it.

    Args:
        path: the file.
        base: the path that the page is served below, without slashes at its ends.

    Raises:
        ConfigError: one line: file, key, what to do instead; never a secret.
    """
    # Nothing of it comes from the environment: who may come in stands in one place.
    told = load(LoginFile, path, {})
    wanted = f"/{base}/{_CALLBACK}" if base else f"/{_CALLBACK}"
    if urlsplit(told.redirect_uri).path != wanted:
        raise ConfigError(
            f"{path}: redirect_uri: its path must be {wanted}, as the page is served below /{base}; "
            "change it here and at the provider, or change --base-path"
        )
    return LoginConfig(
        rules=AccessRules(told.allow.emails, told.allow.domains, told.allow.claims, told.session),
        metadata_url=told.metadata_url,
        client_id=told.client_id,
        redirect_uri=told.redirect_uri,
        scope=told.scope,
        client_secret=_secret(path.parent / told.client_secret_file, f"{path}: client_secret_file"),
        cookie_secret=_cookie_secret(
            None if told.cookie_secret_file is None else path.parent / told.cookie_secret_file,
            f"{path}: cookie_secret_file",
        ),
    )


def _address(text: str) -> SplitResult:
    """A URL that secrets may travel to.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ValueError("is not an address; expected https://host/...")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError("must be https, or what signs people in can be read on the way; http is for loopback only")
    return parts


def _cookie_secret(path: Path | None, what: str) -> str:
    """The secret of the file, which is made with mode 600 where it is missing."""
    if path is None:
        return secrets.token_hex(_SHORTEST)
    if not path.exists():
        made = secrets.token_hex(_SHORTEST)
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "w") as file:
                file.write(f"{made}\n")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"{what}: {path} cannot be made ({reason}); give one in a folder of this user") from None
        return made
    kept = _secret(path, what)
    if len(kept) < _SHORTEST:
        raise ConfigError(f"{what}: {path} holds less than {_SHORTEST} characters; remove it, and a good one is made")
    return kept


def _secret(path: Path, what: str) -> str:
    try:
        text = (secret(None, path, what) or "").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: {path} is no text; write the secret on its first line") from None
    if not text:
        raise ConfigError(f"{what}: {path} is empty; write the secret on its first line")
    if path.stat().st_mode & 0o004:
        _LOG.warning("%s: everybody on this machine may read %s; run: chmod o-r %s", what, path, path)
    return text
