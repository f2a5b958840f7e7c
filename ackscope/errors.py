"""Every error that a user can cause or meet, as one tree.

* AckscopeError: something the user can act on; printed as one line, without a traceback
  + UsageError: the command line asks for something that does not exist
  + ConfigError: the configuration file or its environment is wrong
  + MissingPart: a program, package or permission that the command needs is not there
  + BrokerError: the broker cannot be asked
    - Unreachable: no connection (refused, no route, name unknown, timeout, TLS to a plain port)
    - Refused: it answered and said no (credentials, permissions, virtual host)
    - BadAnswer: it answered with something that is not what it documents
  + DataError: a file of ours (landing, rollup, bundle) cannot be read or written

A programming error is none of these: it keeps its traceback.
"""

# The verdicts of `ackscope diagnose` are 0 (nothing), 1 (warning) and 2 (critical).
# So "could not do it" is 3 for every command: a typing error is never read as a verdict.
EXIT_COULD_NOT = 3


class AckscopeError(Exception):
    """Base of all errors that are told in one line: what, where, what to do instead."""

    exit_code = EXIT_COULD_NOT


class UsageError(AckscopeError):
    """The command line asks for something that does not exist."""


class ConfigError(AckscopeError):
    """The configuration is wrong; the message names the key, the file and the nearest known key."""


class MissingPart(AckscopeError):
    """A program, a package or a permission is missing; the message says how to get it."""


class BrokerError(AckscopeError):
    """The broker could not be asked; the message names host and port, never credentials."""


class Unreachable(BrokerError):
    """No connection to the broker."""


class Refused(BrokerError):
    """The broker answered and refused."""


class BadAnswer(BrokerError):
    """The broker's answer is not what its API documents."""


class DataError(AckscopeError):
    """A file of ours cannot be read or written."""
