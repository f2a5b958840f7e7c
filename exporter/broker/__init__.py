"""Reads a broker through its management API and decodes the JSON into kernel dataclasses. Draws no conclusions."""
