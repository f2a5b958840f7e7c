"""Decoders: one module per endpoint family, JSON of the management API in, kernel dataclasses and gaps out. Pure."""
