"""Settings of one cluster's management API: address, credentials, TLS, timeout."""

from dataclasses import replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_serializer, field_validator, model_validator

from ackscope.address import Address, parse_address, parse_management
from ackscope.errors import UsageError
from ackscope.log import redact
from ackscope.settings import Seconds, Settings, secret


def _token_address(url: str, what: str) -> Address:
    """The address of a token endpoint; its default ports are 443 and 80, not the broker's."""
    address = parse_address(url, schemes=("https", "http"), what=what)
    return replace(address, port=urlsplit(url).port or (443 if address.tls else 80))


class OAuth2Settings(Settings):
    """Token source: the client credentials grant of OAuth 2 (RFC 6749, section 4.4).

    Attributes:
        token_url: token endpoint of the authorization server.
        client_id: client ID registered there.
        client_secret: secret of the client.
        client_secret_file: file whose first line is the secret; re-read when it changes.
        scope: scopes to request, separated by spaces, such as `rabbitmq.tag:monitoring`.
    """

    token_url: str = Field(repr=False)
    client_id: str = Field(min_length=1)
    client_secret: SecretStr | None = None
    client_secret_file: Path | None = None
    scope: str = ""

    @field_serializer("token_url")
    def _without_password(self, url: str) -> str:
        return redact(url)

    @field_validator("token_url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            address = _token_address(value, "token_url")
        except UsageError:
            raise ValueError("invalid address; use the token endpoint, such as https://host/oauth/token") from None
        if "@" in value.partition("://")[2].partition("/")[0]:
            raise ValueError("contains a user or password; use client_id and client_secret instead")
        if not address.path:
            raise ValueError("has no path; use the token endpoint, such as https://host/oauth/token")
        return value

    def address(self, what: str) -> Address:
        """The token endpoint, for error messages."""
        return _token_address(self.token_url, what)

    @model_validator(mode="after")
    def _one_secret(self) -> Self:
        if self.client_secret is None and self.client_secret_file is None:
            raise ValueError("no secret; set client_secret_file or client_secret")
        if self.client_secret is not None and self.client_secret_file is not None:
            raise ValueError("both client_secret and client_secret_file are set; keep one")
        return self


class AccessSettings(Settings):
    """How to access a management API, without its address.

    Secret files are re-read when they change and when the broker refuses the credentials.

    Attributes:
        username: overrides the one in the URL.
        password: overrides the one in the URL.
        password_file: file whose first line is the password; instead of `password`.
        token: bearer token, for a broker that trusts an OAuth 2 server; instead of user and password.
        token_file: file whose first line is the token.
        oauth2: token source.
        ca_file: CA certificates to trust instead of the system's.
        cert_file: client certificate, for a broker that requires one; may contain the key.
        key_file: key of the client certificate, without a passphrase.
        verify: False trusts any certificate.
        timeout: seconds for one request, from its first byte to the last of its answer; connecting has a shorter limit
            of its own. Where this was too short for a list, later requests for it get up to a minute.
    """

    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    token: SecretStr | None = None
    token_file: Path | None = None
    oauth2: OAuth2Settings | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    verify: bool = True
    timeout: Seconds = Field(default=10.0, gt=0, le=600)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("both token and token_file are set; keep one")
        bearer = "token" if self.token is not None else "token_file" if self.token_file is not None else None
        if bearer and self.oauth2 is not None:
            raise ValueError(f"both {bearer} and oauth2 are set; keep one")
        bearer = bearer or ("oauth2" if self.oauth2 is not None else None)
        for name in ("username", "password", "password_file"):
            if bearer and getattr(self, name) is not None:
                raise ValueError(f"both {bearer} and {name} are set; a token replaces user and password: keep one")
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("key_file is set without cert_file; set cert_file to the certificate of this key")
        if self.ca_file is not None and not self.verify:
            raise ValueError("ca_file is set but verify is false, so it would be ignored; remove one of them")
        return self

    @property
    def bearer(self) -> bool:
        """Whether requests carry a token instead of user and password."""
        return self.token is not None or self.token_file is not None or self.oauth2 is not None


class ManagementSettings(AccessSettings):
    """Address of a management API and how to access it.

    Attributes:
        url: such as `http://host:15672`; a path is a prefix. May contain user and password.
    """

    url: str = Field(repr=False)

    @field_serializer("url")
    def _without_password(self, url: str) -> str:
        return redact(url)

    @model_validator(mode="after")
    def _fits_its_url(self) -> Self:
        scheme, _, rest = self.url.partition("://")
        if self.cert_file is not None and scheme == "http":
            raise ValueError("cert_file is set and url is http://; use https://, a certificate needs TLS")
        if self.bearer and "@" in rest.partition("/")[0]:
            raise ValueError("a token is set and url contains a user or password; keep one")
        return self

    def address(self, what: str = "management") -> Address:
        """The address including the credentials.

        Args:
            what: name of these settings in error messages, such as `clusters.shop.management`.

        Raises:
            UsageError: invalid URL.
            ConfigError: the password file cannot be read.
        """
        address = parse_management(self.url, what=f"{what}.url")
        password = secret(self.password, self.password_file, f"{what}.password_file")
        return replace(
            address,
            username=address.username if self.username is None else self.username,
            password=address.password if password is None else password,
        )
