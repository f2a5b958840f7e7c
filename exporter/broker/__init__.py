"""Reads a broker through its management API: JSON in, kernel dataclasses out. Draws no conclusions."""
