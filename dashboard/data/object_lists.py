"""Lists of the broker's objects, asked of the exporter as columns. A failure is an answer too."""

from dataclasses import dataclass, field
from typing import Any

import orjson
import pandas as pd
import requests

from dashboard.data.exporter_client import NEIGHBOUR, TIMEOUTS, failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    """One list of one cluster.

    Attributes:
        rows: a row an object, a column for each that was asked for; None where a value is absent.
        known: False where the exporter has never read this list.
        age_seconds: of the broker's answer, when the exporter sent it.
        problem: why the latest reading failed, or why the exporter did not answer; None where all is well.
    """

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: bool = False
    age_seconds: float | None = None
    problem: str | None = None


def read(url: str, cluster: str, name: str, columns: tuple[str, ...]) -> ObjectList:
    """One list, with these columns; nothing is raised for what the other side does."""
    empty = pd.DataFrame({column: pd.Series(dtype=object) for column in columns})
    query = {"cluster": cluster, "list": name, "columns": ",".join(columns)}
    try:
        response = requests.get(
            f"{url}/api/v1/columns",
            params=query,
            timeout=TIMEOUTS,
            **NEIGHBOUR,
        )
        if response.status_code != 200:
            return ObjectList(rows=empty, problem=f"HTTP status {response.status_code} at /api/v1/columns")
        document: dict[str, Any] = orjson.loads(response.content)
        # Objects, or whole numbers beside absent ones would turn into fractions.
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
        return ObjectList(
            rows=empty, problem="what /api/v1/columns answers is not an exporter's answer of this version"
        )
