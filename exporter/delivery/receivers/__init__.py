"""Receivers: each sends messages to one kind of destination."""
