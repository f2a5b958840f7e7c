"""Start a program that ends with its parent process: `python launch.py PARENT_PID PROGRAM ARGS...`.

PR_SET_PDEATHSIG outlives exec, so it reaches through shells, unshare and chroot to the program at their end.
SIGKILL and not SIGTERM, because a stopped or hung node must end as well, and has no data worth saving.
This file imports no other package, because it runs by its path, before the product can be imported.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    # The parent may have ended before prctl was called.
    if os.getppid() == int(sys.argv[1]):
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  exec is its purpose
