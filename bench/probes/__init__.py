"""The instrument against the wire, against its peer, and against what the broker can do to it."""
