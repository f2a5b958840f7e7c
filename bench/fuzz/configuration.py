"""Configuration files, damaged: the exporter's own, and the web configuration that it may name."""

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import yaml

from ackscope.errors import ConfigError
from ackscope.settings import load
from bench.fuzz.cases import FuzzCase, PromiseBroken, one_line
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.mutator import NUMBERS, Mutator
from exporter.settings import ExporterSettings
from exporter.web.config import WebConfig

_SECRET = "hush-7f3a"  # noqa: S105  a word that no message may have
_HASH = "$2b$10$" + "a" * 53

_DOCUMENTS: dict[str, dict[str, Any]] = {
    "ackscope.yml": {
        "listen": "127.0.0.1:9419",
        "allowed_hosts": ["proxy"],
        "clusters": {
            "shop": {
                "management": {"url": f"http://ann:{_SECRET}@mq:15672", "timeout": "10s", "verify": True},
                "prometheus": {"urls": ["http://mq:15692"], "password": _SECRET, "username": "bob"},
                "sources": "both",
                "amqp": {"url": f"amqp://ann:{_SECRET}@mq:5672/%2f", "nodes": {"rabbit@one": "amqp://one"}},
            },
            "depot": {"management": {"url": "https://mq", "token": _SECRET}},
        },
        "modules": {"prod": {"targets": ["mq-[0-9]+:15672"], "username": "ann", "password": _SECRET, "at_once": 2}},
        "poll": {"interval": "5s", "budget": 0.01},
        "metrics": {"names": "both", "max_queues": 10, "include_queues": "^shop/", "detailed": True},
        "landing": {"rotate": "10s", "max_bytes": 1073741824, "max_age": "7d"},
        "history": {"every": "5m"},
        "delivery": {"receivers": {"pager": {"type": "webhook", "url": f"http://u:{_SECRET}@h/x"}}},
        "otlp": {"endpoint": "http://collector:4318", "headers": {"authorization": _SECRET}},
        "probes": {"enabled": ["confirm", "rtt"], "confirm": {"rate": 10}},
        "diagnosis": {"publishers": {"silent_queues": ["x"]}},
    },
    "web.yml": {
        "basic_auth_users": {"ann": _HASH},
        "http_server_config": {"headers": {"X-Frame-Options": "deny"}, "http2": False},
        "rate_limit": {"interval": "1s", "burst": 20},
        "tls_server_config": {"client_allowed_sans": ["a"], "min_version": "TLS12"},
    },
}
_PATHS = ("/dev/null", "/dev/zero", "/dev/full", "/", "/etc/shadow", "/proc/self/mem", "", "~", "a\0b", "x" * 5000)
_PATTERNS = ("(a+)+$", "[", "(?P<a>b", "a{1,1000}" * 9, "(" * 99, "\\", "(?i", "*", "x{99999}", "(?<=a*)b")
_YAML = (
    *(
        "&a [*a]",
        "!!python/object/apply:os.system [id]",
        "!!binary x",
        "<<: 1",
        "? a",
        "- - - -",
        "|\n",
        ">\n",
        "%YAML 9",
    ),
    *(
        "2001-99-99",
        "0o9",
        "1_0",
        "1:99",
        "~",
        ".nan",
        ".inf",
        "yes",
        "0x",
        "'",
        '"',
        "\t",
        "---",
        "...",
        "@",
        "`",
        "#",
    ),
    *("{" * 60, "[" * 60, "a: " * 40, "&a [x, x]\nb: [*a, *a]", "!!set {a}", "!!omap [a: 1]", "\ufeff", "\x85", "\x00"),
)


class ConfigurationFiles:
    """The target."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ackscope-fuzz-"))
        web = self._folder / "known-web.yml"
        web.write_text(yaml.safe_dump({"basic_auth_users": {"ann": _HASH}}))
        self._texts = {name: yaml.safe_dump(document).encode() for name, document in _DOCUMENTS.items()}
        self._texts["web.yml"] = web.read_bytes()

    def make(self, rng: Random) -> FuzzCase:
        """Damage the values, the keys or the text of a file."""
        name = rng.choice(("ackscope.yml", "ackscope.yml", "ackscope.yml", "web.yml"))
        mutator = Mutator(rng)
        if rng.random() < 0.1:
            return FuzzCase(name, {name: mutator.bytes(self._texts[name])})
        # JSON is YAML too: the mutator's own form has what `yaml.safe_dump` would not write.
        document = yaml.safe_load(self._texts[name])
        for _ in range(rng.choice((0, 1, 1, 2, 5))):
            _damage_a_value(document, rng)
        if rng.random() < 0.3:
            return FuzzCase(name, {name: mutator.document(document)})
        text = yaml.dump(document, allow_unicode=rng.random() < 0.5, default_flow_style=rng.choice((True, False, None)))
        lines = text.split("\n")
        for _ in range(rng.choice((0, 1, 2))):
            number = rng.randrange(len(lines))
            key, colon, value = lines[number].partition(": ")
            fresh = rng.choice(_YAML)
            lines[number] = rng.choice((f"{key}{colon}{fresh}", fresh, mutator.text(lines[number]), f" {key}: {value}"))
        return FuzzCase(name, {name: "\n".join(lines).encode("utf-8", "surrogatepass")})

    def check(self, case: FuzzCase) -> None:
        """It is refused in one line without its secrets, or it is valid."""
        path = self._folder / case.base
        path.write_bytes(case.inputs.get(case.base, self._texts[case.base]))
        try:
            if case.base == "web.yml":
                WebConfig.load(path)
            else:
                load(ExporterSettings, path, {})
        except ConfigError as error:
            one_line(str(error), "the error")
            if _SECRET in str(error):
                raise PromiseBroken(f"a secret is in the error: {error}") from None

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _damage_a_value(document: Any, rng: Random) -> None:
    """Replace a value by one of the kinds that settings have: a path, a pattern, a duration, a number, an address."""
    parent, key = document, rng.choice(list(document))
    while isinstance(parent[key], dict) and parent[key] and rng.random() < 0.95:
        parent = parent[key]
        key = rng.choice(list(parent))
    words = ("10s", "-1s", "1e99s", "nan", "9" * 400 + "d", "http://", "http://[", "http://a:b:c", "amqp://h:99999/x/y")
    more = (
        "s3://b",
        "file:///",
        "127.0.0.1:99999",
        "[::1]:0",
        ":1",
        "a" * 300 + ":1",
        "http://\u2100:1",
        "http://h:\u0661",
    )
    fresh: Any = rng.choice((rng.choice(_PATHS), rng.choice(_PATTERNS), rng.choice(NUMBERS), rng.choice(words + more)))
    place = rng.random()
    if place < 0.7:
        parent[key] = [fresh] if isinstance(parent[key], list) and rng.random() < 0.7 else fresh
    elif place < 0.85:
        parent[rng.choice(("ca_file", "cert_file", "key_file", "password_file", "directory", "spool", "file"))] = fresh
    else:
        parent[Mutator(rng).text(str(key))] = fresh


TARGET = ConfigurationFiles
BENCH = fuzz_bench(
    "configuration", "damaged configuration files: of the exporter, and of its web server", what="files", inputs=100_000
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
