"""Answers to the questions of the morning after: what changed, what comes back, what is worst, and when it is full."""
