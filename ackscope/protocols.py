"""Protocols of clients, by the names that the management API gives them, such as "AMQP 1-0" or "Web MQTT 3-1-1"."""

from functools import lru_cache

AMQP10, MQTT, STREAM = "AMQP 1.0", "MQTT", "stream"

_BEGINS = (("AMQP 1", AMQP10), ("MQTT", MQTT), ("Web MQTT", MQTT), ("stream", STREAM))


@lru_cache(maxsize=256)
def native_protocol(name: str | None) -> str | None:
    """Return which other protocol than AMQP 0-9-1 a connection uses: AMQP10, MQTT or STREAM; None for all others."""
    return next((protocol for begin, protocol in _BEGINS if (name or "").startswith(begin)), None)
