"""A target with every kind of fault, each in a case of its own."""

import logging
import os
import signal
import time
from random import Random

from bench.fuzz.cases import FuzzCase, PromiseBroken


class FaultyTarget:
    """Its input is the number of the case."""

    def make(self, rng):
        """The number by which these random numbers are those of a case."""
        known = {Random(f"7:{number}").random(): number for number in range(100)}
        return FuzzCase("base", {"number": str(known[rng.random()]).encode()})

    def check(self, case):
        """Show the fault of this case."""
        match int(case.inputs.get("number", b"-1")):
            case 1:
                raise ZeroDivisionError("a defect")
            case 2:
                try:
                    {}["caught by a boundary"]
                except KeyError:
                    logging.getLogger("exporter").exception("failed")
            case 3:
                raise PromiseBroken("not as promised")
            case 4:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 6:
                time.sleep(600)

    def close(self):
        """Nothing is open."""


TARGET = FaultyTarget
