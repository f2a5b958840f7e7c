"""The probe process as the exporter runs it (`python -m probes.child`); all its records are kept."""

import signal
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import IO, Any, Self

from pydantic import SecretStr

from ackscope.errors import BrokerError
from ackscope.records import AckBurst, MessageRecord, ProbeOutcome, ProbeState
from probes.ipc import ProbeTarget, decode, encode_targets
from probes.settings import AmqpSettings, ProbesSettings

CLUSTER = "bench"
RUNNING_WITHIN = 30.0
_POLL = 0.02


def confirm_settings(streams: list[str], rate: float, **more: Any) -> ProbesSettings:
    """Return settings of the confirm probe alone, with all streams at one rate."""
    confirm = {"streams": streams, "rate": rate, "control_rate": rate, "max_outstanding": 20_000, **more}
    return ProbesSettings.model_validate({"enabled": ["confirm"], "confirm": confirm})


def settle_settings(queue_types: list[str], rate: float) -> ProbesSettings:
    """Return settings of the settle probe alone."""
    settle = {"queue_types": queue_types, "rate": rate, "max_outstanding": 20_000}
    return ProbesSettings.model_validate({"enabled": ["settle"], "settle": settle})


def streaming_settings(rate: float) -> ProbesSettings:
    """Return settings of the streaming probe alone."""
    streaming = {"rate": rate, "max_outstanding": 20_000}
    return ProbesSettings.model_validate({"enabled": ["streaming"], "streaming": streaming})


class ProbeProcess:
    """A probe process that measures while the block runs.

    Attributes:
        messages, bursts: all records since its start, in order of arrival.
        outcomes: (probe, stream) -> latest summary; its figures are of the last minute.

    Args:
        before: command prefix, such as `nice -n -5`.
        stream_port: port of the stream protocol.
    """

    def __init__(
        self, amqp: str, probes: ProbesSettings, before: tuple[str, ...] = (), stream_port: int | None = None
    ) -> None:
        target = AmqpSettings(url=SecretStr(amqp), stream_port=stream_port)
        self._document = encode_targets([ProbeTarget(CLUSTER, target.servers(), probes)])
        self._before = before
        self.messages: list[MessageRecord] = []
        self.bursts: list[AckBurst] = []
        self.outcomes: dict[tuple[str, str], ProbeOutcome] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise ValueError("not started")
        return self._process.pid

    def confirm(self, stream: str, probe: str = "confirm") -> ProbeOutcome:
        """Return the latest summary of a stream of the confirm probe, or of another one.

        Raises:
            BrokerError: the probe reported none.
        """
        found = self.outcomes.get((probe, stream))
        if found is None:
            raise BrokerError(f"the probe said nothing of {stream}")
        return found

    def reported(self) -> list[ProbeOutcome]:
        """Return the latest summaries of all streams."""
        # A copy, because the reader thread changes the dict.
        return list(self.outcomes.values())

    def __enter__(self) -> Self:
        process = subprocess.Popen(
            [*self._before, sys.executable, "-m", "probes.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._process = process
        if process.stdin is not None and process.stdout is not None:
            process.stdin.write(self._document)
            process.stdin.flush()
            self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
            self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_running(self) -> None:
        """Wait until all reported streams measure.

        Raises:
            BrokerError: a stream does not measure in time; the message has its reason.
        """
        deadline = time.monotonic() + RUNNING_WITHIN
        while not (self.outcomes and all(each.state is ProbeState.RUNNING for each in self.reported())):
            if time.monotonic() > deadline:
                reasons = "; ".join(
                    f"{each.probe} {each.stream}: {each.reason or each.state}" for each in self.reported()
                )
                raise BrokerError(f"the probe does not measure: {reasons or 'it said nothing'}")
            time.sleep(_POLL)

    def run(self, seconds: float) -> None:
        """Measure for a time after the streams have started, then stop."""
        self.wait_running()
        time.sleep(seconds)
        self.stop()

    def stop(self) -> None:
        """Stop the process by closing its stdin, and read its remaining output."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join(10)

    def kill(self) -> None:
        """Kill the process with SIGKILL, like the kernel's out-of-memory killer."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _read(self, lines: IO[bytes]) -> None:
        for line in lines:
            batch = decode(line)
            self.messages += batch.messages
            self.bursts += batch.bursts
            for outcome in batch.outcomes:
                self.outcomes[outcome.probe, outcome.stream] = outcome
        lines.close()
