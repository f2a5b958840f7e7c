"""What all settings have in common: strict files, lenient environments, secrets that never print.

The settings of a room live in that room; the exporter composes them. Precedence: environment, file, defaults.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from ackscope.cli import nearest, seconds
from ackscope.errors import AckscopeError, ConfigError
from ackscope.object_path import ObjectPath, Place
from ackscope.object_path import place as place_of

PREFIX = "ACKSCOPE_"

Seconds = Annotated[float, BeforeValidator(lambda value: seconds(value) if isinstance(value, str) else value)]
"""A duration: a number of seconds, or text such as 10s or 5m."""


def _place(value: object) -> Place:
    if isinstance(value, str):
        try:
            return place_of(value)
        except AckscopeError as error:
            raise ValueError(str(error)) from None
    if isinstance(value, Path | ObjectPath):
        return value
    raise ValueError("must be a path or a URL")


Folder = Annotated[Place, PlainValidator(_place)]
"""A folder, or a prefix of a bucket such as s3://bucket/prefix."""


class Settings(BaseModel):
    """Base of every settings model: frozen, and a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


def load(model: type[S], path: Path, environ: Mapping[str, str] = os.environ) -> S:
    """Read a YAML file into `model`, with every key overridable by environment.

    `ACKSCOPE_LANDING__DIRECTORY=/data` overrides `landing: {directory: ...}`; two underscores go one level down.
    Variables that name no key are ignored: orchestrators inject many that are not ours.

    Raises:
        ConfigError: one line that names file, key, what is wrong, and the nearest known key.
    """
    document = _read(path)
    origins: dict[tuple[str, ...], str] = {}
    for name, value in environ.items():
        if name.startswith(PREFIX):
            place = _override(document, model, name.removeprefix(PREFIX).split("__"), value)
            if place is not None:
                origins[place] = name
    try:
        return model.model_validate(document)
    except ValidationError as error:
        lines = (_explain(model, _origin(item, origins) or str(path), item) for item in error.errors())
        raise ConfigError("; ".join(lines)) from None


_SECRET_LENGTH = 64 * 1024


def secret(value: SecretStr | None, file: Path | None, what: str) -> str | None:
    """The secret itself: as set, or the first line of its file.

    Raises:
        ConfigError: the file cannot be read; the message names the file only.
    """
    if file is None:
        return None if value is None else value.get_secret_value()
    try:
        with file.open(encoding="utf-8") as lines:
            return lines.read(_SECRET_LENGTH).splitlines()[0]
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: {file} is not a text file; write the secret on its first line") from None
    except IndexError:
        raise ConfigError(f"{what}: {file} is empty; write the secret on its first line") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise ConfigError(f"{what}: {file} cannot be read ({reason}); check its path and owner") from None


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a regular expression of a user; None if it is usable."""
    if len(pattern) > _PATTERN_LENGTH:
        return f"longer than {_PATTERN_LENGTH} characters"
    if any(int(number) > _REPEATS for number in _COUNTS.findall(pattern)):
        return f"a repeat of more than {_REPEATS}"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return None


_PATTERN_LENGTH, _REPEATS = 1000, 1000
_COUNTS = re.compile(r"(?<=[{,])[0-9]{1,20}(?=[,}])")
_FILE_BYTES = 4 * 1024 * 1024
_DEPTH, _VALUES = 50, 200_000
"""Bounds of a file: levels, and values once aliases are expanded."""


class _Strict(yaml.SafeLoader):
    """YAML without its traps: keys that are there twice, aliases and levels that multiply, values of no use.

    An error names the key.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._path: list[str] = []
        self._values: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        self._path.append(str(index.value if isinstance(index, yaml.ScalarNode) else "" if index is None else index))
        if len(self._path) > _DEPTH:
            raise self._refused(f"has more than {_DEPTH} levels", event)
        node: Any = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent) and id(node) not in self._values:
            raise self._refused("contains itself", event)
        if isinstance(node, yaml.ScalarNode):
            if any(character == "\0" or 0xD800 <= ord(character) <= 0xDFFF for character in node.value):
                raise self._refused("has a NUL or half a character pair in its text", event)
            self._values[id(node)] = 1
        elif not isinstance(event, yaml.AliasEvent):
            inner = [each for pair in node.value for each in (pair if isinstance(pair, tuple) else (pair,))]
            self._values[id(node)] = 1 + sum(self._values[id(each)] for each in inner)
        if self._values[id(node)] > _VALUES:
            raise self._refused(f"has more than {_VALUES} values, aliases included", event)
        self._names[id(node)] = self._where()
        self._path.pop()
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _Unusable(problem=f"the key {key.value!r} is there twice; keep one", problem_mark=key.start_mark)
            seen.add(key.value)
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  signature of the library
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError):
            # Not the value: it may be a password.
            problem = f"{self._names[id(node)]} has a value that cannot be read; put it in quotes"
            raise _Unusable(problem=problem, problem_mark=node.start_mark) from None

    def _refused(self, problem: str, event: Any) -> "_Unusable":
        return _Unusable(problem=f"{self._where()} {problem}", problem_mark=event.start_mark)

    def _where(self) -> str:
        return ".".join(word for word in self._path[:4] if word) or "the file"


class _Unusable(yaml.MarkedYAMLError):
    pass


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES + 1)
        if len(content) > _FILE_BYTES:
            raise ConfigError(f"{path}: longer than {_FILE_BYTES // 2**20} MiB; give a configuration file")
        document = yaml.load(content.decode(), _Strict)  # noqa: S506  it is a SafeLoader
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give an existing file") from None
    except RecursionError:
        raise ConfigError(f"{path}: has too many levels") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{path}: {_not_yaml(error)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be keys and values, as in `listen: 127.0.0.1:9419`")
    return document


def _not_yaml(error: Exception) -> str:
    """Line and reason; a tab is named as such, for nobody sees it."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "bad text"
    line = f"line {mark.line + 1}: " if mark else ""
    if isinstance(error, _Unusable):
        return f"{line}{problem}"
    if "'\\t'" in problem:
        return f"{line}a tab; YAML is indented by spaces"
    return f"{line}is not YAML ({problem})"


def _override(document: dict[str, Any], model: type[BaseModel], words: list[str], value: str) -> tuple[str, ...] | None:
    """Put one environment value in its place, if `words` names a key of `model`; returns the place."""
    name, rest = words[0].lower(), words[1:]
    field = model.model_fields.get(name)
    if field is None:
        return None
    inner = _inner_model(field.annotation)
    if not rest:
        document[name] = _structured(value) if inner is None and value[:1] in "[{" else value
        return (name,)
    if inner is None:
        return None
    child = document.setdefault(name, {})
    if not isinstance(child, dict):
        return None
    if not _is_mapping(field.annotation):
        place = _override(child, inner, rest, value)
        return None if place is None else (name, *place)
    if len(rest) < 2:
        return None
    known = {str(key).lower(): key for key in child}
    key = known.get(rest[0].lower(), rest[0].lower())
    entry = child.setdefault(key, {})
    place = _override(entry, inner, rest[1:], value) if isinstance(entry, dict) else None
    return None if place is None else (name, key, *place)


def _origin(item: ErrorDetails, origins: Mapping[tuple[str, ...], str]) -> str | None:
    """The environment variable that gave what is wrong; None where the file did."""
    place = item["loc"]
    for known, name in origins.items():
        # A check of several keys together stands one level up, and begins with the key that it is about.
        inside = known[len(place) :] if known[: len(place)] == place else ()
        if place[: len(known)] == known or (inside and _in_words(item).startswith(f"{inside[0]}: ")):
            return name
    return None


def _structured(value: str) -> Any:
    """A list or mapping written in YAML; text that only begins like one, such as `[::1]:9419`, stays text."""
    try:
        return yaml.load(value, _Strict)  # noqa: S506  it is a SafeLoader
    except _Unusable as error:
        raise ConfigError(f"an environment variable that begins with {PREFIX}: {error.problem}") from None
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


_MUST = {
    "missing": "must be set",
    "string_type": "must be text; put it in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "path_type": "must be a path",
    "tuple_type": "must be a list, such as [one, two]",
    "dict_type": "must be keys and values",
    "model_type": "must be keys and values",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "too_short": "must have at least {min_length:g}",
    "string_too_short": "must have at least {min_length:g} characters",
    "string_too_long": "must have at most {max_length:g} characters",
}
"""Kind of error -> what a user of the file can do with."""


def _in_words(item: ErrorDetails) -> str:
    if item["type"] in _MUST:
        return _MUST[item["type"]].format(**item.get("ctx", {}))
    message = item["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _explain(model: type[BaseModel], origin: str, item: ErrorDetails) -> str:
    where = ".".join(str(word) for word in item["loc"]) or "the file"
    if item["type"] != "extra_forbidden":
        return f"{origin}: {where}: {_in_words(item)}"
    level: type[BaseModel] | None = model
    for word in item["loc"][:-1]:
        if level is None:
            break
        field = level.model_fields.get(str(word))
        level = level if field is None else _inner_model(field.annotation)
    known = sorted(level.model_fields) if level else []
    hint = nearest(str(item["loc"][-1]), known) or f"; known keys: {', '.join(known)}"
    return f"{origin}: {where}: unknown key{hint}"
