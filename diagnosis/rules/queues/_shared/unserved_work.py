"""Whether the messages of a queue without a consumer were to be consumed, or are there to be looked at."""

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.ledger import levels
from diagnosis.rules.consumers._shared.similar_queues import similar_queue

_MOST, _TIMES = 0.5, 10
"""Share of its messages that consumers took from a queue that is there for work, or how many times what it holds they
acknowledged. A person that looks at a ring buffer takes little, and acknowledges less.
"""


def is_work(view: View, queue: Queue) -> bool:
    """Return whether the messages of a queue were to be consumed, so that it drops none on purpose.

    Consumers took most of them, or wait at a queue of the same name in another virtual host or of nearly the same name.
    """
    now = levels(queue)
    if now is not None and (now.acked + now.auto >= _MOST * now.arrived > 0 or now.acked >= _TIMES * now.ready > 0):
        return True
    return similar_queue(view, queue) is not None
