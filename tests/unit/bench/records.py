"""A record of a probe that tests can vary."""

from ackscope.records import MessageRecord, Outcome

RECORD = MessageRecord(
    probe="confirm",
    stream="classic",
    queue_type="classic",
    vhost="/",
    node="",
    run_id="0" * 16,
    epoch=1,
    seq=1,
    delivery_mode=2,
    payload_bytes=64,
    intended_at=1000.0,
    send_delay=0.0,
    outcome=Outcome.ACKED,
)
