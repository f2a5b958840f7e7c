"""Lists of broker objects (queues, consumers, ...) from the exporter, as columns. Failures are part of the result."""

from dataclasses import dataclass, field
from typing import Any

import orjson
import pandas as pd
import requests

from dashboard.data.exporter_client import REQUEST_OPTIONS, TIMEOUTS, failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    """One list of one cluster.

    Attributes:
        rows: one row per object, with the requested columns; missing values are None.
        known: False if the exporter has never polled this list.
        age_seconds: age of the broker's data when the exporter sent the list.
        problem: why the latest poll or the request failed; None if both succeeded.
    """

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: bool = False
    age_seconds: float | None = None
    problem: str | None = None


def read(url: str, cluster: str, name: str, columns: tuple[str, ...]) -> ObjectList:
    """Fetch one list with these columns; never raises for network or server errors."""
    empty = pd.DataFrame({column: pd.Series(dtype=object) for column in columns})
    query = {"cluster": cluster, "list": name, "columns": ",".join(columns)}
    try:
        response = requests.get(
            f"{url}/api/v1/columns",
            params=query,
            timeout=TIMEOUTS,
            **REQUEST_OPTIONS,
        )
        if response.status_code != 200:
            return ObjectList(rows=empty, problem=f"HTTP status {response.status_code} at /api/v1/columns")
        document: dict[str, Any] = orjson.loads(response.content)
        # dtype object: pandas would turn integers into floats where other values are missing.
        rows = pd.DataFrame({name: pd.Series(document["columns"][name], dtype=object) for name in columns})
        return ObjectList(
            rows=rows,
            known=document["rows"] is not None,
            age_seconds=document["age_seconds"],
            problem=document["error"],
        )
    except requests.RequestException as error:
        return ObjectList(rows=empty, problem=failure(error))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return ObjectList(rows=empty, problem="/api/v1/columns: not the response of an exporter of this version")
