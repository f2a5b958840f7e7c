"""The TLS context of the exporter's own port."""

import ipaddress
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ackscope.errors import ConfigError
from exporter.web.settings import ClientAuth, TlsSettings

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1"}
_CIPHERS = {
    f"TLS_ECDHE_{key}_WITH_{go}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for go, openssl in (
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""Go's secure TLS 1.2 suites -> OpenSSL's names. Source: https://pkg.go.dev/crypto/tls#CipherSuites"""
_OF_TLS13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def certificate_files(settings: TlsSettings, folder: Path) -> list[Path]:
    """Return the files that the TLS context is built from."""
    named = (settings.cert_file, settings.key_file, settings.client_ca_file)
    return [folder / each for each in named if each is not None]


def make_context(settings: TlsSettings, folder: Path) -> ssl.SSLContext:
    """Build the server context.

    Raises:
        ConfigError: a file is unusable. The message is one line with the key, its file and the problem.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _VERSIONS[settings.min_version], _VERSIONS[settings.max_version]
    context.verify_mode = _CLIENTS[settings.client_auth_type]
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    if not settings.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if settings.cipher_suites:
        context.set_ciphers(":".join(_cipher(name) for name in settings.cipher_suites))
    if settings.curve_preferences:
        context.set_ecdh_curve(_curve(settings.curve_preferences))
    _load(context, folder / settings.cert_file, folder / settings.key_file)
    if settings.client_ca_file is not None:
        authorities = folder / settings.client_ca_file
        _readable("client_ca_file", authorities)
        try:
            context.load_verify_locations(authorities)
        except ssl.SSLError:
            raise ConfigError(f"tls_server_config.client_ca_file: {authorities} contains no PEM certificate") from None
    return context


class FollowingContext(ssl.SSLContext):
    """A context that starts each connection with the context that is in force then.

    Attributes:
        current: returns that context.
    """

    current: Callable[[], ssl.SSLContext]

    def wrap_bio(self, *args: Any, **keywords: Any) -> ssl.SSLObject:
        """Start a connection."""
        return self.current().wrap_bio(*args, **keywords)


def has_allowed_name(connection: ssl.SSLObject, allowed: Iterable[str]) -> bool:
    """Whether the client certificate has one of the names; False without a certificate."""
    shown: Any = connection.getpeercert() or {}
    names = {_name(text) for _, text in shown.get("subjectAltName", ())}
    return not names.isdisjoint(_name(text) for text in allowed)


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    _readable("cert_file", certificate)
    _readable("key_file", key)
    try:
        # Without a password callback OpenSSL would prompt on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"tls_server_config.key_file: {key} is not the key of {certificate}") from None
        raise ConfigError(
            f"tls_server_config: {certificate} and {key} are not a PEM certificate and its key without a passphrase"
        ) from None


def _readable(what: str, path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"tls_server_config.{what}: {path} cannot be read ({error.strerror}); check its path and owner"
        ) from None


def _cipher(name: str) -> str:
    if name in _OF_TLS13:
        raise ConfigError(
            f"tls_server_config.cipher_suites: {name} is a TLS 1.3 suite, which cannot be configured; remove it"
        )
    if name not in _CIPHERS:
        raise ConfigError(f"tls_server_config.cipher_suites: unknown suite {name}; use {', '.join(_CIPHERS)}")
    return _CIPHERS[name]


def _curve(names: tuple[str, ...]) -> str:
    if len(names) > 1 or names[0] not in _CURVES:
        raise ConfigError(
            f"tls_server_config.curve_preferences: only one curve can be set, one of {', '.join(_CURVES)}; "
            "without the key the best common curve is used, X25519 included"
        )
    return _CURVES[names[0]]


def _name(text: str) -> str:
    """Return the canonical form of a name for comparison: IP addresses in short form."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text
