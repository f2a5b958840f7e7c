"""Paths of object storage: `s3://`, `gs://` and `az://`, with the methods of `pathlib.Path` that ackscope uses.

An object is replaced as a whole, so a reader never sees a part of it. There are no folders: every name before a slash
is one as long as an object is below it. Credentials and endpoint come from the environment (`AWS_*`, `GOOGLE_*`,
`AZURE_*`), from the instance or pod, or from a file of `name = value` lines that `ACKSCOPE_STORAGE_FILE` names.
"""

import errno
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ackscope.errors import DataError, MissingPart, UsageError
from ackscope.storage_options import OPTIONS_FILE, current_options, is_plain

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs", "az")

# Objects up to this size are read with one request.
_WHOLE_BYTES = 8 * 2**20

# Seconds that a request is repeated after server errors and lost connections, and that one attempt may take.
_RETRY_SECONDS, _REQUEST_SECONDS, _CONNECT_SECONDS = 20.0, 60.0, 5.0

# Error codes of S3 and Google, and of Azure.
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Parts of a URL that can hold a secret, such as the signature of Azure.
_SECRETS = re.compile(r"\?\S+|(?<=://)[^/\s@]+@")


class ObjectStorageError(DataError, OSError):
    """Object storage cannot be reached, or refuses a request; `strerror` says why, without credentials."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(errno.EIO, reason, path)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class ConflictError(Exception):
    """The object is not in the version that was expected: somebody else wrote it."""


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """What `os.stat_result` is for a file.

    Attributes:
        st_size: bytes.
        st_mtime_ns, st_ctime_ns: when the object was written, by the clock of the storage; often in whole seconds.
        st_ino: a number that differs between two versions of an object.
    """

    st_size: int
    st_mtime_ns: int
    st_ino: int

    @property
    def st_ctime_ns(self) -> int:
        """The same as `st_mtime_ns`: objects are not renamed."""
        return self.st_mtime_ns

    @property
    def st_mtime(self) -> float:
        """Seconds since 1970."""
        return self.st_mtime_ns / 1e9


@dataclass(frozen=True, order=True)
class ObjectPath:
    """One object, or a folder of objects. Executors get a copy and connect themselves.

    Attributes:
        base: scheme and bucket, such as `s3://bucket`.
        key: the rest, without slashes at its ends.
        known: the status from a listing; None if it was not listed.
    """

    base: str
    key: str = ""
    known: ObjectStatus | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.base}/{self.key}" if self.key else self.base

    def __truediv__(self, other: str | PurePath) -> "ObjectPath":
        return ObjectPath(self.base, f"{self.key}/{other}".strip("/"))

    @property
    def name(self) -> str:
        """The last part."""
        return self.key.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last part without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def parent(self) -> "ObjectPath":
        """The folder above."""
        return ObjectPath(self.base, self.key.rpartition("/")[0])

    def with_name(self, name: str) -> "ObjectPath":
        """A neighbour."""
        return self.parent / name

    def absolute(self) -> "ObjectPath":
        """Itself."""
        return self

    def relative_to(self, other: "ObjectPath") -> PurePosixPath:
        """The part below another path.

        Raises:
            ValueError: it is not below it.
        """
        if other.base != self.base:
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath(self.key).relative_to(other.key)

    def stat(self) -> ObjectStatus:
        """The current status.

        Raises:
            FileNotFoundError: there is no such object.
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            return _status(obstore.head(self._store, self.key))

    def exists(self) -> bool:
        """Whether the object is there.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether an object is below it.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        return next(self.iterdir(), None) is not None

    def read_bytes(self) -> bytes:
        """The content.

        Raises:
            FileNotFoundError: there is no such object.
            ObjectStorageError: the storage cannot be used.
        """
        return self.read_version()[0]

    def read_version(self) -> tuple[bytes, str]:
        """The content and its version, for `write_version`; raises the same errors as `read_bytes`."""
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            found = obstore.get(self._store, self.key)
            return bytes(found.bytes()), _version(found.meta)

    def read_range(self, start: int, length: int) -> bytes:
        """Some bytes; raises the same errors as `read_bytes`."""
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            return bytes(obstore.get_range(self._store, self.key, start=start, length=length))

    def read_small(self) -> bytes | int:
        """The content if it is small, else its size in bytes; raises the same errors as `read_bytes`."""
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            found = obstore.get(self._store, self.key)
            size = int(found.meta["size"])
            return bytes(found.bytes()) if size <= _WHOLE_BYTES else size

    def write_bytes(self, content: bytes | memoryview) -> None:
        """Write it, whatever was there.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            obstore.put(self._store, self.key, content)

    def write_version(self, content: bytes | memoryview, version: str = "") -> str:
        """Write it if it has this version now; "": if it is absent. Returns the new version.

        Raises:
            ConflictError: it has another version.
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        named = zip(("e_tag", "version"), version.split("\n"), strict=False)
        expected: Any = {name: value for name, value in named if value} or "create"
        try:
            with _errors(self):
                done = obstore.put(self._store, self.key, content, mode=expected, use_multipart=False)
                return _version(done)
        except ConflictError:
            # A repeated request finds what its first attempt wrote, if only the response was lost.
            found, now = self.read_version()
            if now != version and found == bytes(content):
                return now
            raise

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  as in `Path`
        """Remove it, if it is there.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        with _errors(self), _suppress_absent():
            obstore.delete(self._store, self.key)

    def replace(self, target: "ObjectPath") -> None:
        """Move it: there are two copies for a moment.

        Raises:
            FileNotFoundError: there is no such object.
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            obstore.copy(self._store, self.key, target.key)
        self.unlink()

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a folder exists once an object is below it."""

    def rmdir(self) -> None:
        """Do nothing: a folder is gone with its last object."""

    def iterdir(self) -> Iterator["ObjectPath"]:
        """What is directly below it, sorted; objects are `known`.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            found = obstore.list_with_delimiter(self._store, f"{self.key}/" if self.key else None)
        yield from sorted(
            [
                *(ObjectPath(self.base, prefix.strip("/")) for prefix in found["common_prefixes"]),
                *(ObjectPath(self.base, it["path"], _status(it)) for it in found["objects"]),
            ]
        )

    def below(self, after: str = "") -> Iterator["ObjectPath"]:
        """All objects below it, `known`, in the order of their keys; only those after a relative path, if it is given.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        import obstore  # noqa: PLC0415  optional

        with _errors(self):
            offset = f"{self.key}/{after}".strip("/") if after else None
            for page in obstore.list(self._store, f"{self.key}/" if self.key else None, offset=offset, chunk_size=1000):
                for it in page:
                    # Some servers with Azure's API ignore where a listing shall start.
                    if offset is None or it["path"] > offset:
                        yield ObjectPath(self.base, it["path"], _status(it))

    def glob(self, pattern: str) -> Iterator["ObjectPath"]:
        """Objects and folders that fit a pattern such as `cluster=*/date=*`, sorted.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        first, _, rest = pattern.partition("/")
        is_plain = not set("*?[") & set(first)
        found = [self / first] if is_plain and rest else [it for it in self.iterdir() if fnmatchcase(it.name, first)]
        for it in found:
            if not rest:
                yield it
            elif it.known is None:
                yield from it.glob(rest)

    @property
    def _store(self) -> Any:
        return _connect(self.base)


Place = Path | ObjectPath
"""A folder or file on a local or mounted disk, or on object storage."""


def place(text: str) -> Place:
    """The place that an option or setting names: a path, or a URL.

    Raises:
        UsageError: it is no address of a kind that is supported.
        MissingPart: the package for object storage is not installed.
    """
    scheme = _ADDRESS.match(text)
    if scheme is None:
        return Path(text)
    kind, parts = scheme[1].lower(), urlsplit(text)
    if kind == "file":
        if parts.netloc not in {"", "localhost"}:
            raise UsageError(f"{text!r} names another machine; mount its folder and pass the path")
        return Path(parts.path)
    if kind == "hdfs":
        raise UsageError(
            f"{text!r}: HDFS has no conditional writes; mount it (its NFS gateway, or fuse-dfs) and pass the path, "
            "or use an S3 gateway such as Apache Ozone's and pass s3://bucket/prefix"
        )
    if kind in {"s3a", "s3n", "gcs", "abfs", "abfss", "wasb", "wasbs", "azure"}:
        known = "gs" if kind == "gcs" else "s3" if kind.startswith("s3") else "az"
        raise UsageError(f"{_SECRETS.sub('', text)!r} is an address of Hadoop's; write {known}://bucket/prefix")
    if kind not in SCHEMES:
        raise UsageError(
            f"{_SECRETS.sub('', text)!r} is not an address that ackscope knows; use s3://, gs://, az:// or a folder"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"{_SECRETS.sub('', text)!r}: an address has no credentials or options; put them in the environment, or "
            f"in the file that {OPTIONS_FILE} names"
        )
    if not _NAME.fullmatch(parts.netloc):
        raise UsageError(f"{text!r} names no bucket; use {kind}://bucket/prefix")
    require_package()
    return ObjectPath(f"{kind}://{parts.netloc}", re.sub("/+", "/", parts.path).strip("/"))


def relative(path: Place, root: Place) -> PurePath:
    """The part of a path below a folder.

    Raises:
        ValueError: it is not below it.
    """
    if isinstance(path, ObjectPath):
        if isinstance(root, ObjectPath):
            return path.relative_to(root)
        raise ValueError(f"{path} is not below {root}")
    return path.relative_to(str(root))


def move(path: Place, target: Place) -> None:
    """Give a file another name in the same storage.

    Raises:
        OSError: it cannot be moved.
    """
    if isinstance(path, ObjectPath):
        path.replace(target)  # type: ignore[arg-type]  # in the same storage
    else:
        path.replace(str(target))


def require_package() -> None:
    """Check that the package for object storage is installed.

    Raises:
        MissingPart: it is not.
    """
    try:
        import obstore  # noqa: F401, PLC0415  optional
    except ImportError:
        raise MissingPart("object storage needs a package: pip install 'ackscope[object-storage]'") from None


_stores: dict[tuple[str, int, int], Any] = {}
_stores_lock = threading.Lock()


def _connect(base: str) -> Any:
    """The connection pool of a bucket: one for each process, made again when the file of options changes."""
    options, changed = current_options()
    key = (base, os.getpid(), changed)
    with _stores_lock:
        if key not in _stores:
            _stores[key] = _new_store(base, options)
        return _stores[key]


def _new_store(base: str, options: dict[str, str]) -> "ObjectStore":
    from obstore.exceptions import BaseError  # noqa: PLC0415  optional
    from obstore.store import from_url  # noqa: PLC0415  optional

    client = {
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
        # A local or private server may have no TLS: then the user wrote http:// as its address.
        "allow_http": is_plain(options),
    }
    retry = {"max_retries": 10, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)}
    settings: Any = {"config": options or None, "client_options": client, "retry_config": retry}
    try:
        return from_url(base, **settings)
    except (BaseError, TypeError, ValueError) as error:
        raise ObjectStorageError(base, short_reason(error)) from None


def _status(meta: Any) -> ObjectStatus:
    token = f"{meta.get('e_tag')} {meta.get('version')}".encode()
    number = int.from_bytes(blake2b(token, digest_size=8).digest(), "big")
    return ObjectStatus(int(meta["size"]), round(meta["last_modified"].timestamp() * 1e6) * 1000, number)


def _version(meta: Any) -> str:
    return f"{meta.get('e_tag') or ''}\n{meta.get('version') or ''}"


@contextmanager
def _errors(path: ObjectPath) -> Iterator[None]:
    """Turn errors of the package into ours."""
    from obstore.exceptions import (  # noqa: PLC0415  optional
        AlreadyExistsError,
        BaseError,
        NotFoundError,
        PreconditionError,
    )

    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        if any(code in str(error) for code in _NO_BUCKET):
            raise ObjectStorageError(str(path), f"there is no bucket {path.base}") from None
        raise FileNotFoundError(errno.ENOENT, "not found", str(path)) from None
    except (AlreadyExistsError, PreconditionError):
        raise ConflictError(str(path)) from None
    except BaseError as error:
        raise ObjectStorageError(str(path), short_reason(error)) from None


@contextmanager
def _suppress_absent() -> Iterator[None]:
    from obstore.exceptions import NotFoundError  # noqa: PLC0415  optional

    try:
        yield
    except (NotFoundError, FileNotFoundError):
        return


def short_reason(error: BaseException) -> str:
    """A short reason: the first line, without anything that may be secret."""
    text = next(iter(str(error).splitlines()), type(error).__name__)
    return _SECRETS.sub("", text)[:300]
