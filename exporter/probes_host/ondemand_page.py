"""`/probe?probe=NAME&target=CLUSTER[&debug=true]`: one short probe of a configured cluster.

Returns metrics for a scraper, or with `debug=true` the report and the log for a person. The target is a name: the
exporter never connects to an address from the query.
"""

import math
from http import HTTPStatus

import orjson

from ackscope.errors import AckscopeError
from ackscope.log import get_logger
from exporter.api.query_params import unknown_name
from exporter.exposition.encode import CONTENT_TYPE, render
from exporter.probes_host.ondemand import OnDemandProbes, OnDemandRequest, OnDemandRun
from exporter.probes_host.ondemand_metrics import run_metrics
from exporter.web.http import TEXT, Request, Response
from probes.catalogue import PROBES

log = get_logger(__name__)

TIMEOUT_HEADER = "x-prometheus-scrape-timeout-seconds"
_MARGIN, _SHORTEST, _LONGEST = 2.5, 1.0, 60.0
"""Seconds: margin for cleanup and the response, and the bounds of a run."""
_DEFAULT = 30.0


class OnDemandProbePage:
    """Handler of `/probe` for probes.

    Args:
        clusters: names of all clusters.
        one_shots: runs the probes.
    """

    def __init__(self, clusters: tuple[str, ...], one_shots: OnDemandProbes) -> None:
        self._clusters, self._one_shots = clusters, one_shots

    def respond(self, request: Request) -> Response:
        """Run the requested probe, or return a one-line error."""
        probe, target = request.query.get("probe", ""), request.query.get("target", "")
        refusal = self._refuse(probe, target)
        if refusal is not None:
            return refusal
        debug = request.query.get("debug", "").lower() in {"1", "true", "yes"}
        within = run_timeout(request.headers.get(TIMEOUT_HEADER))
        try:
            ran = self._one_shots.run(OnDemandRequest(cluster=target, probe=probe, within=within, as_json=not debug))
        except AckscopeError as error:
            return _line(str(error), HTTPStatus.INTERNAL_SERVER_ERROR)
        if ran is None:
            busy = f"a probe of cluster {target} is already running, only one at a time; retry in a few seconds"
            return _line(busy, HTTPStatus.TOO_MANY_REQUESTS)
        return _for_person(ran) if debug else _for_scraper(ran)

    def _refuse(self, probe: str, target: str) -> Response | None:
        if probe not in PROBES:
            return _line(f"probe={unknown_name(probe, tuple(PROBES))}", HTTPStatus.BAD_REQUEST)
        if target not in self._clusters:
            return _line(f"target={unknown_name(target, self._clusters)}", HTTPStatus.BAD_REQUEST)
        if target not in self._one_shots.targets:
            missing = f"cluster {target} has no AMQP address; set clusters.{target}.amqp.url in the configuration"
            return _line(missing, HTTPStatus.NOT_FOUND)
        return None


def run_timeout(header: str | None) -> float:
    """Return the seconds that a run may take, so that the response arrives before the timeout of the scraper."""
    try:
        seconds = float(header) if header is not None else _DEFAULT + _MARGIN
    except ValueError:
        seconds = _DEFAULT + _MARGIN
    return _DEFAULT if math.isnan(seconds) else min(_LONGEST, max(_SHORTEST, seconds - _MARGIN))


def _for_scraper(ran: OnDemandRun) -> Response:
    try:
        document = orjson.loads(ran.report) if ran.report.strip() else {}
        metrics = run_metrics(document, success=ran.code == 0 and "probe" in document, seconds=ran.seconds)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        log.exception("malformed output of the probe")
        metrics = run_metrics(None, success=False, seconds=ran.seconds)
    return Response(render(metrics).encode(), CONTENT_TYPE)


def _for_person(ran: OnDemandRun) -> Response:
    ended = "timed out and was interrupted" if ran.code is None else f"exit code {ran.code}"
    metrics = render(run_metrics(None, success=ran.code == 0, seconds=ran.seconds))
    parts = (
        ("report", ran.report.strip() or "none"),
        ("log", ran.log.strip() or "empty"),
        ("run", f"{ended}, {ran.seconds:.1f} s"),
        ("metrics (incomplete with debug=true)", metrics.strip()),
    )
    return Response("\n\n".join(f"# {title}\n{text}" for title, text in parts).encode() + b"\n", TEXT)


def _line(text: str, status: HTTPStatus) -> Response:
    return Response(f"{text}\n".encode(), status=status)
