"""Start a program that dies with the process that asked for it: `python launch.py PARENT_PID PROGRAM ARGS...`.

PR_SET_PDEATHSIG outlives exec, so it reaches through shells, unshare and chroot to the program at their end.
SIGKILL and not SIGTERM: a stopped or hung node must go as well, and there is nothing in it worth saving.
This file imports no room: it runs by its path, before any of the product is importable.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    # The parent may have gone before the kernel was asked.
    if os.getppid() == int(sys.argv[1]):
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  replacing itself is what it is for
