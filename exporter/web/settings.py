"""Schema of the web configuration file, as in Prometheus' exporter toolkit. Keys without effect here are rejected.

Source: https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md
"""

import re
from enum import StrEnum
from pathlib import Path

from pydantic import Field, SecretStr, field_validator, model_validator

from ackscope.settings import Seconds, Settings

_HASH = re.compile(r"\$2[abxy]?\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_HEADERS: dict[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff", ""),
    "X-Frame-Options": ("deny", "sameorigin", ""),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Headers that can be set, as in the toolkit, with their allowed values if restricted."""


class ClientAuth(StrEnum):
    """Client certificate policy, named as in Go."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


_UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")


class TlsSettings(Settings):
    """`tls_server_config`. Relative paths are relative to the file.

    Attributes:
        cert_file: server certificate with its chain.
        key_file: private key, without a passphrase.
        client_auth_type: whether clients must present a certificate.
        client_ca_file: CA certificates for client certificates.
        client_allowed_sans: if set, a client certificate must have one of these names (DNS, IP, e-mail, URI).
        min_version: TLS12 or TLS13.
        max_version: TLS12 or TLS13.
        cipher_suites: TLS 1.2 cipher suites, named as in Go.
        prefer_server_cipher_suites: the server's order of preference applies.
        curve_preferences: one of CurveP256, CurveP384, CurveP521; if unset, OpenSSL's default.
    """

    cert_file: Path
    key_file: Path
    client_auth_type: ClientAuth = ClientAuth.NONE
    client_ca_file: Path | None = None
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _is_in_files(cls, value: object) -> object:
        if isinstance(value, dict):
            for name in ("cert", "key", "client_ca"):
                if value.get(name):
                    raise ValueError(f"{name} cannot be inlined here; put it into a file and set {name}_file")
            return {name: each for name, each in value.items() if name not in {"cert", "key", "client_ca"}}
        return value

    @field_validator("client_auth_type", mode="before")
    @classmethod
    def _can_be_done(cls, value: object) -> object:
        if value in _UNVERIFIED:
            raise ValueError(
                f"unsupported {value}: an unverified certificate proves nothing; use "
                f"{ClientAuth.REQUIRED} or {ClientAuth.NONE}"
            )
        if value == "":
            return ClientAuth.NONE
        if value not in list(ClientAuth):
            raise ValueError(f"unknown value {value!r}; use {', '.join(ClientAuth)}")
        return value

    @field_validator("min_version", "max_version")
    @classmethod
    def _is_safe(cls, value: str) -> str:
        if value in {"TLS10", "TLS11"}:
            raise ValueError(f"insecure and unsupported {value}; use TLS12 or TLS13")
        if value not in {"TLS12", "TLS13"}:
            raise ValueError(f"invalid version {value!r}; use TLS12 or TLS13")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "TlsSettings":
        if self.min_version > self.max_version:
            raise ValueError("min_version is above max_version; lower min_version")
        if self.client_ca_file is not None and self.client_auth_type is ClientAuth.NONE:
            raise ValueError(f"client_ca_file has no effect with {ClientAuth.NONE}; set client_auth_type too")
        if self.client_ca_file is None and self.client_auth_type is not ClientAuth.NONE:
            raise ValueError(f"client_ca_file is missing; {self.client_auth_type} needs it")
        if self.client_allowed_sans and self.client_auth_type is not ClientAuth.REQUIRED:
            raise ValueError(f"client_allowed_sans needs client_auth_type: {ClientAuth.REQUIRED}")
        if self.cipher_suites and self.min_version == "TLS13":
            raise ValueError("cipher_suites apply to TLS 1.2, which min_version: TLS13 excludes; remove them")
        return self


class HttpSettings(Settings):
    """`http_server_config`.

    Attributes:
        http2: must be false if set: HTTP/2 is not supported.
        headers: header -> value; replaces the default, and an empty value removes it.
    """

    http2: bool = False
    headers: dict[str, str] = Field(default={})

    @field_validator("http2")
    @classmethod
    def _is_not_spoken(cls, value: bool) -> bool:  # noqa: FBT001  signature of the library
        if value:
            raise ValueError("unsupported HTTP/2; remove the key or use false")
        return value

    @field_validator("headers")
    @classmethod
    def _can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if name not in _HEADERS:
                raise ValueError(f"header {name} cannot be set; use one of {', '.join(_HEADERS)}")
            allowed = _HEADERS[name]
            if allowed and text not in allowed:
                raise ValueError(
                    f"invalid value {text!r} of header {name}; use {' or '.join(word for word in allowed if word)}"
                )
            if not text.isprintable() or not text.isascii():
                raise ValueError(f"invalid character in header {name}; use printable ASCII")
        return value


class RateSettings(Settings):
    """`rate_limit`: one token bucket for all clients together.

    Attributes:
        interval: time until a token is added; 0 for no limit.
        burst: size of the bucket.
    """

    interval: Seconds = Field(default=0.0, ge=0)
    burst: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _lets_one_in(self) -> "RateSettings":
        if self.interval > 0 and self.burst < 1:
            raise ValueError("burst: 0 would reject every request; use 1 or more")
        return self


class WebSettings(Settings):
    """The whole file.

    Attributes:
        tls_server_config: if unset, plain HTTP.
        http_server_config: headers.
        basic_auth_users: name -> bcrypt hash of the password; if empty, no authentication.
        rate_limit: requests beyond it get 429.
    """

    tls_server_config: TlsSettings | None = None
    http_server_config: HttpSettings = HttpSettings()
    basic_auth_users: dict[str, SecretStr] = Field(default={})
    rate_limit: RateSettings = RateSettings()

    @field_validator("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit", mode="before")
    @classmethod
    def _may_be_empty(cls, value: object) -> object:
        """An empty `basic_auth_users:` is null in YAML."""
        return {} if value is None else value

    @field_validator("basic_auth_users")
    @classmethod
    def _are_hashes(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, hashed in value.items():
            if ":" in name:
                raise ValueError(
                    f"invalid user name {name!r}; remove the colon, which ends the name in basic authentication"
                )
            if not _HASH.fullmatch(hashed.get_secret_value()):
                raise ValueError(
                    f"the password of {name!r} is not a bcrypt hash; create one with: htpasswd -nBC 10 {name}"
                )
        return value
