"""Diagnosis: pure functions that turn readings into findings, one rule per file. No I/O, no clock, no logs."""
