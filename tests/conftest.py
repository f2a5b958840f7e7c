"""What every test stands on."""

import signal

# A shell that starts something in the background has it ignore Ctrl-C, and so everything that it starts in turn.
signal.signal(signal.SIGINT, signal.default_int_handler)
