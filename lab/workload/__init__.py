"""A sample workload, a small shop: about 40 messages/s in several patterns, all of them healthy.

`python -m lab.workload --amqp URL` runs it until SIGTERM or the end of its input.

| shape | what it shows |
|---|---|
| orders | confirming publisher, direct exchange, quorum queue with a dead-letter queue, 2 consumers of prefetch 20 |
| payments | durable classic queue, one consumer with prefetch 1 that takes 50 to 100 ms per message and keeps up |
| emails | 5 % are rejected and dead-lettered to a retry queue without a consumer, and return after 5 s |
| events | fan-out to two queues whose consumers have prefetch 50 and 5 |
"""
