"""Polling: schedules the endpoint families of a cluster, measures what they cost, and keeps the latest readings."""
