"""The errors that users can act on, as one class hierarchy.

* AckscopeError: something the user can act on; printed as one line, without a traceback
  + UsageError: the command line asks for something that does not exist
  + ConfigError: the configuration file or its environment is wrong
  + MissingPart: a program, package or permission that the command needs is missing
  + BrokerError: a request to the broker failed
    - Unreachable: no connection (refused, no route, name unknown, timeout, TLS to a plain port)
    - Refused: the broker refused it (credentials, permissions, virtual host)
    - BadAnswer: the response differs from the documented API
    - Unsupported: this version of the broker does not have what is asked for
  + DataError: a file of ackscope (landing, rollup, bundle) cannot be read or written

Programming errors are not part of it: they show their traceback.
"""

from typing import Self

# The verdicts of `ackscope diagnose` are 0 (nothing), 1 (warning) and 2 (critical).
# So failures exit with 3 in every command: a typing error is never mistaken for a verdict.
EXIT_COULD_NOT = 3


class AckscopeError(Exception):
    """Base of all errors that are printed as one line: what failed, where, and what to do instead.

    Attributes:
        log: lines of a log that follow that line.
    """

    exit_code = EXIT_COULD_NOT

    log = ""

    def with_log(self, lines: str) -> Self:
        """Add the lines of a log, and return the error."""
        self.log = lines
        return self

    def __str__(self) -> str:
        """Return the message as one line, even if it quotes a name that has several; then the log, if there is one."""
        line = super().__str__().replace("\r", "\\r").replace("\n", "\\n")
        return f"{line}\n{self.log}" if self.log else line


class UsageError(AckscopeError):
    """The command line asks for something that does not exist."""


class ConfigError(AckscopeError):
    """The configuration is wrong; the message names the key, the file and the nearest known key."""


class MissingPart(AckscopeError):
    """A program, a package or a permission is missing; the message says how to get it."""


class BrokerError(AckscopeError):
    """A request to the broker failed; the message names host and port, never credentials."""


class Unreachable(BrokerError):
    """No connection to the broker."""


class Refused(BrokerError):
    """The broker refused the request."""


class BadAnswer(BrokerError):
    """The broker's response differs from its documented API."""


class Unsupported(BrokerError):
    """This version or set-up of the broker does not have what is asked for. Nothing is wrong with it."""


class DataError(AckscopeError):
    """A file of ackscope cannot be read or written."""
