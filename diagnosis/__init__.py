"""Pure functions from what was seen to findings, one rule a file. No I/O, no clock, no logs."""
