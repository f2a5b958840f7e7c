"""`python -m exporter.docs.configuration > docs/configuration.md`: the reference of every setting."""

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
from exporter.settings import ExporterSettings

HEADER = f"""\
# Configuration

`ackscope exporter --config FILE` reads one YAML file. This page is made from the settings in the code:
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

- `ackscope exporter --config FILE --check-config` says whether a file is good, and all that it names with it.
- SIGHUP and `POST /-/reload` read the file again while everything runs ([exporter.md](exporter.md)); `listen`,
  `web_config` and `landing.directory` are read at the start only.
- A key that is not known is an error that names the nearest known one, and a key that is there twice is an error.
  Environment variables that name no key are ignored.
- The environment wins over the file: `{PREFIX}` and the key in capitals, two underscores for each level. `SHOP` below
  stands for the cluster's name, `PROD` for that of a module.
- Durations are written `200ms`, `10s`, `5m`, `1h`, or as a number of seconds.
- Where nodes can be addressed one by one, `nodes` under `amqp` names them, such as
  `nodes: {{rabbit@one: amqp://one.shop:5672, rabbit@two: amqp://two.shop:5672}}`: handshake, round trip and confirms
  are then measured at each of them, under the label `node`, and once more through `url`, where that label is empty.
- Passwords: better in a file (`password_file`) or the environment than in this file. They are never printed.
"""


_SHARED: dict[str, dict[str, str]] = {
    "AmqpSettings": {
        "url": "such as `amqp://host:5672/vhost`; the path is the virtual host. User and password may be in it.",
        "username": "instead of the one in the URL.",
        "password": "instead of the one in the URL.",
        "password_file": "a file whose first line is the password; instead of `password`.",
        "ca_file": "certificates to trust instead of the system's.",
        "verify": "False trusts any certificate.",
    },
    "ProbesSettings": {
        "enabled": "which probes run; an empty list runs none.",
        "prefix": "names of all that the probes make on a broker start with this and a dot.",
    },
}
"""Model -> field -> what it does, for those whose docstring does not tell."""


class SettingKey(NamedTuple):
    """One setting."""

    path: tuple[str, ...]
    kind: str
    default: str
    about: str

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        named = "PROD" if self.path[0] == "modules" else "SHOP"
        words = (named if word == "NAME" else word.upper() for word in self.path)
        return PREFIX + "__".join(words)


def keys(model: type[BaseModel] = ExporterSettings, path: tuple[str, ...] = ()) -> Iterator[SettingKey]:
    """Every setting of a model, those of inner models in their place; `NAME` stands for a name that users choose."""
    documented = attribute_docs(model)
    for name, field in model.model_fields.items():
        inner = _inner(field.annotation)
        if inner is not None and get_origin(field.annotation) is not tuple:
            named = (*path, name, "NAME") if get_origin(field.annotation) is dict else (*path, name)
            yield from keys(inner, named)
            continue
        about = field.description or documented.get(name, "")
        yield SettingKey((*path, name), _kind(field), _default(field), about)


def attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> what the docstrings of a model and its bases say of it under `Attributes:`."""
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
    lines = ["| key | type | default | variable | what it does |", "|---|---|---|---|---|"]
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
    """The type of a setting in words, with its bounds."""
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
        return "must be set"
    value = field.default
    if value is None or value == "":
        return ""
    if any(isinstance(item, BeforeValidator) for item in field.metadata):
        return f"`{value:.10g}s`"
    return f"`{orjson.dumps(value).decode()}`" if isinstance(value, bool | tuple) else f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(page())
