import asyncio
from random import Random

from ackscope.clock import SystemClock
from ackscope.errors import Refused, Unsupported
from ackscope.records import Outcome, ProbeState
from probes.confirm_ledger import Settled
from probes.identity import Identity
from probes.instrument import LoopLag
from probes.runner import Runner
from probes.stream_stats import MessageEntry, StreamStats


class OneStream:
    """A stream whose session runs a function of the test."""

    def __init__(self, name, session):
        self.cluster = "shop"
        identity = Identity(
            probe=name,
            stream="classic",
            queue_type="classic",
            vhost="/",
            queue="q",
            run_id="0" * 16,
            rate=1.0,
            payload_bytes=64,
        )
        self.stats = StreamStats(identity, lag=LoopLag(0.0, span=None).recent, span=None)
        self._session = session
        self.idle = True

    async def session(self):
        """Run the function of the test."""
        await self._session(self)

    def tick(self, now):
        """Process what has arrived."""
        self.stats.aggregate(now, 100)

    def stop_sending(self):
        """Nothing is ever sent."""


async def refused(_):
    """Raise a refusal by the broker."""
    raise Refused("broker:5672: no permission")


async def broken(_):
    """Raise a programming error."""
    raise ZeroDivisionError("a fault")


async def steady(stream):
    """Record one acked message, then do nothing."""
    stream.stats.running()
    stream.stats.enter(MessageEntry(1, Settled(1, 0.0, 0.0, 0.1, Outcome.ACKED, multiple=False, group=1)))
    await asyncio.sleep(3600)


def run(*streams):
    """Run until every stream reported its state and the steady one its message, then stop; return all batches."""
    batches = []

    async def scenario():
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def emit(batch):
            batches.append(batch)
            states = {outcome.probe: outcome for known in batches for outcome in known.outcomes}
            reported = [outcome for outcome in states.values() if outcome.state is not ProbeState.CONNECTING]
            if len(reported) == len(streams):
                stop.set()

        lag = LoopLag(loop.time(), span=None)
        await Runner(streams, clock=SystemClock(), lag=lag, random=Random(1), emit=emit).run(stop)

    asyncio.run(asyncio.wait_for(scenario(), 30))
    return batches


def last(batches):
    """Return the last outcome of each probe."""
    return {outcome.probe: outcome for batch in batches for outcome in batch.outcomes}


def test_a_failing_stream_never_stops_the_others(caplog):
    """A refusal and a fault of the program are states of their own streams; the third goes on measuring."""
    batches = run(OneStream("refused", refused), OneStream("broken", broken), OneStream("steady", steady))
    outcomes = last(batches)

    assert outcomes["refused"].state is ProbeState.FAILED
    assert outcomes["refused"].reason == "broker:5672: no permission"
    assert outcomes["broken"].state is ProbeState.FAILED
    assert "internal error of the probe (ZeroDivisionError: a fault)" == outcomes["broken"].reason
    assert outcomes["steady"].state is ProbeState.RUNNING
    assert "probe failed unexpectedly" in caplog.text


def test_every_record_is_handed_on_once():
    """This includes records from just before the end."""
    batches = run(OneStream("steady", steady))

    assert 1 == sum(len(batch.messages) for batch in batches)
    assert {"shop"} == {batch.cluster for batch in batches}


async def unsupported(_):
    """A broker that lacks what is measured."""
    raise Unsupported("broker:5672: AMQP 1.0 is measured on RabbitMQ 4.0 and later, and this is RabbitMQ 3.10.8")


def test_what_the_broker_does_not_support_is_said_once_and_asked_again_seldom():
    """It is a state and no failure."""
    calls = []

    async def counted(stream):
        calls.append(stream)
        await unsupported(stream)

    outcomes = last(run(OneStream("settle", counted), OneStream("steady", steady)))

    assert 1 == len(calls)
    assert ProbeState.UNSUPPORTED is outcomes["settle"].state
    assert "this is RabbitMQ 3.10.8" in outcomes["settle"].reason
    assert outcomes["settle"].success is False
    assert outcomes["settle"].doubtful is None
