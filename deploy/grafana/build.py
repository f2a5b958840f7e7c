"""Make the Grafana dashboards: `python deploy/grafana/build.py` writes a JSON file for each YAML file beside it.

A YAML file says what is shown (title, unit, expressions, a sentence about it); how it looks is decided here, once.
Grafana imports the JSON files as they are and asks which Prometheus to use.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
WIDTH = 24
_HEIGHTS = {"row": 1, "stat": 4, "table": 9, "timeseries": 8, "heatmap": 8, "bargauge": 8}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}

# Safe for colour-blind eyes, and one meaning each: red is critical, yellow is a warning, blue is information.
_STATES = {"critical": "#c4162a", "warning": "#e0b400", "info": "#3274d9", "good": "#37872d", "none": "#8e8e8e"}

Panel = dict[str, Any]


def dashboard(spec: Mapping[str, Any]) -> dict[str, Any]:
    """One dashboard in Grafana's model."""
    return {
        "uid": f"ackscope-{spec['name']}",
        "title": f"ackscope: {spec['title']}",
        "description": spec["about"],
        "tags": ["ackscope", "rabbitmq"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(_variables(spec.get("variables", {})))},
        "links": [
            {
                "title": "ackscope",
                "type": "dashboards",
                "tags": ["ackscope"],
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "panels": list(_placed(spec["panels"])),
    }


def _variables(more: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    known = {"cluster": "label_values(ackscope_poll_success, cluster)", **more}
    for name, query in known.items():
        several = name != "cluster"
        yield {
            "name": name,
            "label": name,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 1,
            "multi": several,
            "includeAll": several,
            **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if several else {}),
        }


def _placed(panels: list[Panel]) -> Iterator[dict[str, Any]]:
    """From left to right and down; a row takes a line of its own."""
    x = y = tallest = 0
    for number, panel in enumerate(panels, start=1):
        kind = "row" if "row" in panel else panel.get("kind", "timeseries")
        width = WIDTH if kind == "row" else panel.get("width", 12)
        height = panel.get("height", _HEIGHTS[kind])
        if x + width > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        place = {"x": x, "y": y, "w": width, "h": height}
        x, tallest = x + width, max(tallest, height)
        if kind == "row":
            yield {
                "id": number,
                "type": "row",
                "title": panel["row"],
                "collapsed": False,
                "gridPos": place,
                "panels": [],
            }
        else:
            yield {"id": number, "type": kind, "gridPos": place, **_panel(kind, panel)}


def _panel(kind: str, panel: Panel) -> dict[str, Any]:
    heat = kind == "heatmap"
    instant = kind in {"table", "bargauge"}
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": _SOURCE,
            "expr": " ".join(expression.split()),
            "legendFormat": legend,
            "instant": instant,
            "range": not instant,
            "format": "heatmap" if heat else "table" if kind == "table" else "time_series",
        }
        for number, (legend, expression) in enumerate(panel["show"].items())
    ]
    return {
        "title": panel["title"],
        "description": panel["about"],
        "datasource": _SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": _defaults(kind, panel), "overrides": []},
        "options": _options(kind, panel),
        **({"transformations": _transformations(panel)} if kind == "table" else {}),
    }


def _defaults(kind: str, panel: Panel) -> dict[str, Any]:
    steps = [{"color": _STATES[colour], "value": value} for colour, value in panel.get("steps", {"none": None}).items()]
    drawn: dict[str, Any] = {"unit": panel.get("unit", "short"), "noValue": panel.get("nothing", "no data")}
    if "min" in panel or kind in {"timeseries", "bargauge"}:
        drawn["min"] = panel.get("min", 0)
    if "max" in panel:
        drawn["max"] = panel["max"]
    if kind == "timeseries":
        # A gap is shown as a gap.
        drawn["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 8,
            "spanNulls": False,
            "showPoints": "auto",
        }
        if panel.get("log"):
            drawn["custom"]["scaleDistribution"] = {"type": "log", "log": 10}
            drawn.pop("min")
        if panel.get("stack"):
            drawn["custom"]["stacking"] = {"mode": "normal"}
    if "steps" in panel:
        drawn["thresholds"] = {"mode": "absolute", "steps": steps}
        drawn["color"] = {"mode": "thresholds"}
    return drawn


def _options(kind: str, panel: Panel) -> dict[str, Any]:
    if kind == "timeseries":
        return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    if kind == "stat":
        coloured = "background" if "steps" in panel else "none"
        return {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": coloured,
            "graphMode": "area",
            "textMode": "auto",
        }
    if kind == "heatmap":
        return {
            "calculate": False,
            "yAxis": {"unit": panel.get("unit", "s")},
            "color": {"scheme": "Viridis", "mode": "scheme"},
        }
    if kind == "bargauge":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "orientation": "horizontal", "displayMode": "basic"}
    return {"showHeader": True, "sortBy": panel.get("sort", [])}


def _transformations(panel: Panel) -> list[dict[str, Any]]:
    hidden = dict.fromkeys(("Time", "__name__", "instance", "job", *panel.get("hide", ())), True)
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": panel.get("rename", {})}},
    ]


def as_json(path: Path) -> str:
    """The JSON file that a YAML file stands for."""
    return json.dumps(dashboard(yaml.safe_load(path.read_text())), indent=1, sort_keys=True) + "\n"


def main() -> int:
    """Write them all."""
    for path in sorted(FOLDER.glob("*.yml")):
        path.with_suffix(".json").write_text(as_json(path))
        sys.stdout.write(f"{path.with_suffix('.json').name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
