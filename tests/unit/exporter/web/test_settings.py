import bcrypt
import pytest

from ackscope.errors import ConfigError
from exporter.web.config import WebConfig
from tests.unit.exporter.web.certificates import make

# One salt: a test that is named by the hash has the same name in every process.
HASH = bcrypt.hashpw(b"secret", b"$2b$04$abcdefghijklmnopqrstuu").decode()
TLS = "cert_file: server.pem, key_file: server.key"

WRONG = [
    ("[]", "must be keys and values, as in `listen: 127.0.0.1:9419`"),
    ("tls_server_config: [", "line 1: is not YAML (expected the node content, but found '<stream end>')"),
    ("tls_config: {}", "tls_config: unknown key, did you mean 'tls_server_config'?"),
    (
        f"tls_server_config: {{{TLS}, cert_fil: a}}",
        "tls_server_config.cert_fil: unknown key, did you mean 'cert_file'?",
    ),
    ("tls_server_config: {cert_file: server.pem}", "tls_server_config.key_file: must be set"),
    (
        "tls_server_config: {cert: PEM, key_file: server.key}",
        "tls_server_config: cert cannot be inlined here; put it into a file and set cert_file",
    ),
    (
        "tls_server_config: {cert_file: none.pem, key_file: server.key}",
        (
            "tls_server_config.cert_file: FOLDER/none.pem cannot be read (No such file or directory); "
            "check its path and owner"
        ),
    ),
    (
        "tls_server_config: {cert_file: server.pem, key_file: other.key}",
        "tls_server_config.key_file: FOLDER/other.key is not the key of FOLDER/server.pem",
    ),
    (
        "tls_server_config: {cert_file: server.key, key_file: server.key}",
        (
            "tls_server_config: FOLDER/server.key and FOLDER/server.key are not a PEM certificate and its key "
            "without a passphrase"
        ),
    ),
    (
        "tls_server_config: {cert_file: locked.pem, key_file: locked.key}",
        (
            "tls_server_config: FOLDER/locked.pem and FOLDER/locked.key are not a PEM certificate and its key "
            "without a passphrase"
        ),
    ),
    (
        f"tls_server_config: {{{TLS}, client_auth_type: RequireAnyClientCert}}",
        (
            "tls_server_config.client_auth_type: unsupported RequireAnyClientCert: "
            "an unverified certificate proves nothing; "
            "use RequireAndVerifyClientCert or NoClientCert"
        ),
    ),
    (
        f"tls_server_config: {{{TLS}, client_auth_type: Always}}",
        (
            "tls_server_config.client_auth_type: unknown value 'Always'; use NoClientCert, VerifyClientCertIfGiven, "
            "RequireAndVerifyClientCert"
        ),
    ),
    (
        f"tls_server_config: {{{TLS}, client_auth_type: RequireAndVerifyClientCert}}",
        "tls_server_config: client_ca_file is missing; RequireAndVerifyClientCert needs it",
    ),
    (
        f"tls_server_config: {{{TLS}, client_ca_file: server.pem}}",
        "tls_server_config: client_ca_file has no effect with NoClientCert; set client_auth_type too",
    ),
    (
        f"tls_server_config: {{{TLS}, client_auth_type: VerifyClientCertIfGiven, client_ca_file: server.key}}",
        "tls_server_config.client_ca_file: FOLDER/server.key contains no PEM certificate",
    ),
    (
        f"tls_server_config: {{{TLS}, client_allowed_sans: [a]}}",
        "tls_server_config: client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert",
    ),
    (
        f"tls_server_config: {{{TLS}, min_version: TLS10}}",
        "tls_server_config.min_version: insecure and unsupported TLS10; use TLS12 or TLS13",
    ),
    (
        f"tls_server_config: {{{TLS}, max_version: '1.3'}}",
        "tls_server_config.max_version: invalid version '1.3'; use TLS12 or TLS13",
    ),
    (
        f"tls_server_config: {{{TLS}, min_version: TLS13, max_version: TLS12}}",
        "tls_server_config: min_version is above max_version; lower min_version",
    ),
    (
        f"tls_server_config: {{{TLS}, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}}",
        (
            "tls_server_config.cipher_suites: unknown suite TLS_RSA_WITH_RC4_128_SHA; use "
            "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, "
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, "
            "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        ),
    ),
    (
        f"tls_server_config: {{{TLS}, cipher_suites: [TLS_AES_128_GCM_SHA256]}}",
        (
            "tls_server_config.cipher_suites: TLS_AES_128_GCM_SHA256 is a TLS 1.3 suite, which cannot be configured; "
            "remove it"
        ),
    ),
    (
        f"tls_server_config: {{{TLS}, min_version: TLS13, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}}",
        "tls_server_config: cipher_suites apply to TLS 1.2, which min_version: TLS13 excludes; remove them",
    ),
    (
        f"tls_server_config: {{{TLS}, curve_preferences: [X25519, CurveP256]}}",
        (
            "tls_server_config.curve_preferences: only one curve can be set, one of CurveP256, CurveP384, "
            "CurveP521; without the key the best common curve is used, X25519 included"
        ),
    ),
    (
        "http_server_config: {http2: true}",
        "http_server_config.http2: unsupported HTTP/2; remove the key or use false",
    ),
    (
        "http_server_config: {headers: {Server: me}}",
        (
            "http_server_config.headers: header Server cannot be set; use one of Strict-Transport-Security, "
            "X-Content-Type-Options, X-Frame-Options, X-XSS-Protection, Content-Security-Policy"
        ),
    ),
    (
        "http_server_config: {headers: {X-Frame-Options: never}}",
        "http_server_config.headers: invalid value 'never' of header X-Frame-Options; use deny or sameorigin",
    ),
    (
        'http_server_config: {headers: {X-XSS-Protection: "a\\r\\nSet-Cookie: b"}}',
        "http_server_config.headers: invalid character in header X-XSS-Protection; use printable ASCII",
    ),
    (
        "basic_auth_users: {ann: plain-password}",
        "basic_auth_users: the password of 'ann' is not a bcrypt hash; create one with: htpasswd -nBC 10 ann",
    ),
    (
        f"basic_auth_users: {{'a:b': {HASH}}}",
        "basic_auth_users: invalid user name 'a:b'; remove the colon, which ends the name in basic authentication",
    ),
    ("rate_limit: {interval: often}", "rate_limit.interval: 'often' is not a duration, write 30s, 5m, 1h or 200ms"),
    (
        "rate_limit: {interval: 1s}",
        "rate_limit: burst: 0 would reject every request; use 1 or more",
    ),
    ("rate_limit: {burst: -1}", "rate_limit.burst: must be at least 0"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Certificates: a server's, another's, and one with a passphrase."""
    folder = tmp_path_factory.mktemp("web")
    make(folder, "server")
    make(folder, "other")
    make(folder, "locked", key="secret")
    return folder


def load(folder, text):
    """Load a file with this text."""
    path = folder / "web.yml"
    path.write_text(text)
    return WebConfig.load(path)


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_a_wrong_file_is_reported_in_one_line(folder, text, expected):
    """Which file, which key, what is wrong, what to write instead; never a password."""
    with pytest.raises(ConfigError) as raised:
        load(folder, text)

    assert f"{folder}/web.yml: {expected.replace('FOLDER', str(folder))}" == str(raised.value)
    assert "plain-password" not in str(raised.value)


def test_a_file_that_is_not_there_is_reported_too(tmp_path):
    """As any other."""
    with pytest.raises(ConfigError) as raised:
        WebConfig.load(tmp_path / "web.yml")

    assert f"{tmp_path}/web.yml: cannot be read (No such file or directory); give an existing file" == str(raised.value)


@pytest.mark.parametrize(
    ("text", "tls"),
    [
        ("", False),
        ("basic_auth_users:\n", False),
        ("rate_limit: {interval: 0, burst: 0}", False),
        ("http_server_config: {http2: false, headers: {X-Frame-Options: sameorigin}}", False),
        (f"basic_auth_users: {{ann: {HASH}, bob: {HASH.replace('$2b$', '$2y$')}}}", False),
        (f"tls_server_config: {{{TLS}}}", True),
        (f"tls_server_config: {{{TLS}, client_auth_type: '', min_version: TLS13}}", True),
        (
            (
                f"tls_server_config: {{{TLS}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: other.pem, "
                "client_allowed_sans: [a], cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256], "
                "prefer_server_cipher_suites: false, curve_preferences: [CurveP384]}"
            ),
            True,
        ),
    ],
)
def test_a_good_file_is_accepted(folder, text, tls):
    """All keys of the toolkit that have an effect here are accepted."""
    assert tls == load(folder, text).tls
