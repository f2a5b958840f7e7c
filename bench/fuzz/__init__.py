"""Fuzzing: damaged input of every kind, for hours; each case can be repeated from its seed and number."""
