"""Parquet files on disk or object storage, opened with Arrow."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from ackscope.object_path import ObjectPath, Place


def dataset(
    paths: Sequence[Place], schema: pa.Schema | None = None, dictionary_columns: Sequence[str] = ()
) -> ds.Dataset:
    """These files as one dataset; columns of text can stay dictionaries, as they are in the files."""
    remote = [path for path in paths if isinstance(path, ObjectPath)]
    system = file_system(remote[0]) if remote else None
    kind = ds.ParquetFileFormat(dictionary_columns=dictionary_columns)
    return ds.dataset([arrow_path(path) for path in paths], schema=schema, format=kind, filesystem=system)


def parquet_file(path: Place) -> pq.ParquetFile:
    """An open file, for a `with` block.

    Raises:
        OSError, pyarrow.ArrowException: it cannot be opened.
    """
    try:
        return pq.ParquetFile(_open(path) if isinstance(path, ObjectPath) else path)
    except UnicodeDecodeError:
        raise pa.ArrowInvalid("the name of a column is not text") from None


def footer(path: Place) -> pq.FileMetaData:
    """The footer; of an object no more than that is read.

    Raises:
        OSError, pyarrow.ArrowException: it cannot be read.
    """
    if isinstance(path, ObjectPath):
        return pq.read_metadata(pa.PythonFile(_RangeReader(path, path.stat().st_size), mode="r"))
    return pq.read_metadata(path)


def file_system(path: Place) -> fs.FileSystem:
    """The Arrow file system of a path."""
    return fs.PyFileSystem(_Objects(path.base)) if isinstance(path, ObjectPath) else fs.LocalFileSystem()


def arrow_path(path: Place) -> str:
    """The path in its Arrow file system."""
    return path.key if isinstance(path, ObjectPath) else str(path)


def _open(path: ObjectPath) -> Any:
    found = path.read_small()
    if isinstance(found, bytes):
        return pa.BufferReader(found)
    return pa.PythonFile(_RangeReader(path, found), mode="r")


class _RangeReader:
    """An object as a Python file: one request for each read."""

    def __init__(self, path: ObjectPath, size: int) -> None:
        self._path, self._size, self._at = path, size, 0
        self.closed = False

    def read(self, length: int = -1) -> bytes:
        left = self._size - self._at
        length = left if length < 0 else min(length, left)
        found = self._path.read_range(self._at, length) if length else b""
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class _Objects(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """The objects of one bucket as an Arrow file system that can only be read."""

    def __init__(self, base: str) -> None:
        self._base = base

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Objects) and other._base == self._base

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._base)

    def get_type_name(self) -> str:
        return self._base.partition(":")[0]

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        try:
            status = ObjectPath(self._base, path).stat()
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)
        return fs.FileInfo(path, fs.FileType.File, size=status.st_size, mtime_ns=status.st_mtime_ns)

    def open_input_file(self, path: str) -> Any:
        return _open(ObjectPath(self._base, path))

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def _refuse(self, *_: object) -> Any:
        raise NotImplementedError("read only")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse
