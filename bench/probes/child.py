"""The probe process as the exporter runs it, `python -m probes.child`, with every record that it writes kept."""

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
    """The confirm probe alone, all its streams at one rate."""
    confirm = {"streams": streams, "rate": rate, "control_rate": rate, "max_outstanding": 20_000, **more}
    return ProbesSettings.model_validate({"enabled": ["confirm"], "confirm": confirm})


class ProbeProcess:
    """A probe process, measuring for as long as the block runs.

    Attributes:
        messages, bursts: every record since its start, in the order they came.
        outcomes: (probe, stream) -> its latest summary; the window of figures is the last minute.

    Args:
        before: words put before the command, such as `nice -n -5`.
    """

    def __init__(self, amqp: str, probes: ProbesSettings, before: tuple[str, ...] = ()) -> None:
        self._document = encode_targets([ProbeTarget(CLUSTER, AmqpSettings(url=SecretStr(amqp)), probes)])
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

    def confirm(self, stream: str) -> ProbeOutcome:
        """The latest summary of a stream of the confirm probe.

        Raises:
            BrokerError: there is none.
        """
        found = self.outcomes.get(("confirm", stream))
        if found is None:
            raise BrokerError(f"the probe said nothing of {stream}")
        return found

    def reported(self) -> list[ProbeOutcome]:
        """The latest summaries of all streams."""
        # A copy: the reader goes on.
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
        """Return once every stream that told of itself measures.

        Raises:
            BrokerError: one does not; the message holds its reason.
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
        """Let it measure for so long once it runs, then stop it."""
        self.wait_running()
        time.sleep(seconds)
        self.stop()

    def stop(self) -> None:
        """End it in order, and read all that it still has to say."""
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
        """End it at once, as the kernel's out-of-memory killer would."""
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
