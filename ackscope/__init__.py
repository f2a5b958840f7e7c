"""The kernel: the words that all rooms speak, and the front door. It holds no logic of a room and imports none."""

__version__ = "0.1.0"
