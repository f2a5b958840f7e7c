"""`python -m exporter.docs.configuration > docs/configuration.md`: the configuration reference."""

import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import orjson
from pydantic import BaseModel, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo

from ackscope.settings import PREFIX
from diagnosis.pages import pages
from exporter.settings import ExporterSettings

HEADER = f"""\
# Configuration

`ackscope exporter --config.file FILE` (or `--config FILE`) reads one YAML file. `--web.listen-address HOST:PORT`
overrides `listen`, `--web.config.file FILE` overrides `web_config`. This page is generated from the settings in the
code:
`.venv/bin/python -m exporter.docs.configuration > docs/configuration.md`.

```yaml
listen: 127.0.0.1:9419
clusters:
  shop:
    management:
      url: http://shop-rabbit:15672
      username: monitor
      password_file: /run/secrets/monitor
    amqp:
      url: amqp://shop-rabbit:5672/probes
      username: probe
      password_file: /run/secrets/probe
      nodes:
        rabbit@shop-1: amqp://shop-1:5672
landing:
  directory: /var/lib/ackscope/landing
history:
  rollups: /var/lib/ackscope/rollups
```

- `ackscope exporter --config.file FILE --check-config` validates a file, including every file it names.
- SIGHUP and `POST /-/reload` reload the file without a restart ([exporter.md](exporter.md)); `listen`, `web_config`,
  `landing.directory` and `landing.spool` are read at startup only.
- Unknown keys are errors that name the nearest known key; duplicate keys are errors too. Environment variables that
  name no key are ignored.
- The environment overrides the file: `{PREFIX}` and the key in capitals, two underscores for each level. Below, `SHOP`
  stands for the name of a cluster, `PROD` for that of a module, `PAGER` for that of a receiver.
- Durations: `200ms`, `10s`, `5m`, `1h`, or a number of seconds.
- If nodes can be addressed individually, list them in `nodes` under `amqp`, such as
  `nodes: {{rabbit@one: amqp://one.shop:5672, rabbit@two: amqp://two.shop:5672}}`. Handshake, round trip and confirms
  are then measured on each of them, with the label `node`, and once more through `url` with an empty label.
- Passwords: prefer a file (`password_file`) or the environment. They are never printed.
"""


_SHARED: dict[str, dict[str, str]] = {
    "AmqpSettings": {
        "url": "such as `amqp://host:5672/vhost`; the path is the virtual host. It may include user and password.",
        "username": "overrides the one in the URL.",
        "password": "overrides the one in the URL.",
        "password_file": "file whose first line is the password; instead of `password`.",
        "ca_file": "CA certificates to trust instead of the system's.",
        "verify": "false accepts any certificate.",
    },
    "ProbesSettings": {
        "enabled": "probes to run; an empty list runs none.",
        "prefix": "prefix, before a dot, of everything that the probes create on a broker.",
    },
}
"""Model -> field -> description, for fields without one in the docstring."""


class SettingKey(NamedTuple):
    """One setting."""

    path: tuple[str, ...]
    kind: str
    default: str
    about: str

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        named = {"modules": "PROD", "delivery": "PAGER"}.get(self.path[0], "SHOP")
        words = (named if word == "NAME" else word.upper() for word in self.path)
        return PREFIX + "__".join(words)


def keys(model: type[BaseModel] = ExporterSettings, path: tuple[str, ...] = ()) -> Iterator[SettingKey]:
    """Yield every setting of a model, including nested ones; `NAME` stands for a user-defined name."""
    documented = {**attribute_docs(model), **_thresholds(path)}
    for name, field in model.model_fields.items():
        inner = _inner(field.annotation)
        if inner is not None and get_origin(field.annotation) is not tuple:
            named = (*path, name, "NAME") if get_origin(field.annotation) is dict else (*path, name)
            yield from keys(inner, named)
            continue
        about = field.description or documented.get(name, "")
        yield SettingKey((*path, name), _kind(field), _default(field), about)


def _thresholds(path: tuple[str, ...]) -> dict[str, str]:
    """Return the meaning of each threshold of a group of rules, by its name, from the pages of the rules."""
    if path[:1] != ("diagnosis",) or len(path) != 2:
        return {}
    named = [(key, text) for page in pages().values() for key, text in page.thresholds.items()]
    return {key.partition(".")[2]: text for key, text in named if key.startswith(f"{path[1]}.")}


def attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field, from the `Attributes:` blocks of a model and its base classes."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        found.update(_SHARED.get(base.__name__, {}))
        _, _, block = (base.__dict__.get("__doc__") or "").partition("Attributes:\n")
        lines = block.splitlines()
        for item in re.split(r"^ {8}(?=\w)", "\n".join(lines), flags=re.MULTILINE)[1:]:
            names, _, text = item.partition(":")
            found.update(dict.fromkeys((name.strip() for name in names.split(",")), " ".join(text.split())))
    return found


def page() -> str:
    """The whole page."""
    lines = ["| key | type | default | variable | meaning |", "|---|---|---|---|---|"]
    for key in keys():
        cells = (f"`{'.'.join(key.path)}`", key.kind, key.default, f"`{key.variable}`", key.about)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return HEADER + "\n" + "\n".join(lines) + "\n"


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for item in get_args(annotation) if (found := _inner(item)) is not None), None)


_KINDS: dict[Any, str] = {
    str: "text",
    int: "number",
    float: "number",
    bool: "true or false",
    Path: "path",
    SecretStr: "secret",
}


def _kind(field: FieldInfo) -> str:
    """Describe the type of a setting in words, with its bounds."""
    if any(isinstance(item, BeforeValidator) for item in field.metadata):
        words = "duration"
    else:
        words = _words(field.annotation)
    bounds = [f"{sign} {value:g}" for item in field.metadata for sign, value in _bounds(item)]
    return ", ".join([words, *bounds])


def _words(annotation: Any) -> str:
    if annotation in _KINDS:
        return _KINDS[annotation]
    if get_origin(annotation) is dict:
        return "mapping of name to " + _words(get_args(annotation)[1])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mappings of " + ", ".join(annotation.model_fields)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return " or ".join(annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(str(item) for item in get_args(annotation))
    inner = next(_words(item) for item in get_args(annotation) if item is not type(None))
    return f"list of {inner}" if get_origin(annotation) is tuple else inner


def _bounds(item: Any) -> Iterator[tuple[str, float]]:
    for name, sign in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        value = getattr(item, name, None)
        if value is not None:
            yield sign, value


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or value == "":
        return ""
    if any(isinstance(item, BeforeValidator) for item in field.metadata):
        return f"`{value:.10g}s`"
    return f"`{orjson.dumps(value).decode()}`" if isinstance(value, bool | tuple) else f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(page())
