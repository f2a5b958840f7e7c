"""The kernel: types and formats that all rooms share, and the command line. It imports no room."""

__version__ = "0.1.0"
