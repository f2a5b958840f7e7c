"""Answers for the post-mortem: what changed, what recurs, which queues are worst, and when limits are reached."""
