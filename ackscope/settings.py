"""What all settings have in common: strict files, lenient environments, secrets that never print.

The settings of a room live in that room; the exporter composes them. Precedence: environment, file, defaults.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from ackscope.cli import nearest, seconds
from ackscope.errors import ConfigError

PREFIX = "ACKSCOPE_"

Seconds = Annotated[float, BeforeValidator(lambda value: seconds(value) if isinstance(value, str) else value)]
"""A duration: a number of seconds, or text such as 10s or 5m."""


class Settings(BaseModel):
    """Base of every settings model: frozen, and a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


S = TypeVar("S", bound=Settings)


def load(model: type[S], path: Path, environ: Mapping[str, str] = os.environ) -> S:
    """Read a YAML file into `model`, with every key overridable by environment.

    `ACKSCOPE_LANDING__DIRECTORY=/data` overrides `landing: {directory: ...}`; two underscores go one level down.
    Variables that name no key are ignored: orchestrators inject many that are not ours.

    Raises:
        ConfigError: one line that names file, key, what is wrong, and the nearest known key.
    """
    document = _read(path)
    for name, value in environ.items():
        if name.startswith(PREFIX):
            _override(document, model, name.removeprefix(PREFIX).split("__"), value)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(model, path, item) for item in error.errors())) from None


def secret(value: SecretStr | None, file: Path | None, what: str) -> str | None:
    """The secret itself: as set, or the first line of its file.

    Raises:
        ConfigError: the file cannot be read; the message names the file only.
    """
    if file is None:
        return None if value is None else value.get_secret_value()
    try:
        return file.read_text().splitlines()[0]
    except IndexError:
        raise ConfigError(f"{what}: {file} is empty; write the secret on its first line") from None
    except OSError as error:
        raise ConfigError(f"{what}: {file} cannot be read ({error.strerror}); check its path and owner") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give an existing file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{path}: {line}is not YAML ({getattr(error, 'problem', None) or 'bad text'})") from None
    if not isinstance(document or {}, dict):
        raise ConfigError(f"{path}: must be keys and values, as in `listen: 127.0.0.1:9419`")
    return document or {}


def _override(document: dict[str, Any], model: type[BaseModel], words: list[str], value: str) -> None:
    """Put one environment value in its place, if `words` names a key of `model`."""
    field = model.model_fields.get(words[0].lower())
    if field is None:
        return
    name = words[0].lower()
    rest = words[1:]
    inner = _inner_model(field.annotation)
    if not rest:
        document[name] = _structured(value) if inner is None and value[:1] in "[{" else value
        return
    if inner is None:
        return
    child = document.setdefault(name, {})
    if not isinstance(child, dict):
        return
    if _is_mapping(field.annotation):
        if len(rest) < 2:
            return
        known = {key.lower(): key for key in child}
        entry = child.setdefault(known.get(rest[0].lower(), rest[0].lower()), {})
        if isinstance(entry, dict):
            _override(entry, inner, rest[1:], value)
    else:
        _override(child, inner, rest, value)


def _structured(value: str) -> Any:
    """A list or mapping written in YAML; text that only begins like one, such as `[::1]:9419`, stays text."""
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value


def _is_mapping(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is dict


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """The settings model inside `Model`, `Model | None` or `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in reversed(getattr(annotation, "__args__", ())):
        found = _inner_model(inner)
        if found is not None:
            return found
    return None


def _explain(model: type[BaseModel], path: Path, item: ErrorDetails) -> str:
    where = ".".join(str(word) for word in item["loc"]) or "the file"
    if item["type"] != "extra_forbidden":
        message = item["msg"].removeprefix("Value error, ")
        return f"{path}: {where}: {message[0].lower()}{message[1:]}"
    level: type[BaseModel] | None = model
    for word in item["loc"][:-1]:
        if level is None:
            break
        field = level.model_fields.get(str(word))
        level = level if field is None else _inner_model(field.annotation)
    known = sorted(level.model_fields) if level else []
    hint = nearest(str(item["loc"][-1]), known) or f"; known keys: {', '.join(known)}"
    return f"{path}: {where}: unknown key{hint}"
