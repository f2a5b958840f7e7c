"""Decoders of JSON from the management API into kernel dataclasses and gaps; one module per endpoint family. Pure."""
