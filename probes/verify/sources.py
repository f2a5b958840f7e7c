"""Titles of the guides that the claims come from."""

CONFIRMS = "Consumer Acknowledgements and Publisher Confirms"
RELIABILITY = "Reliability Guide"
SEMANTICS = "Broker Semantics (4.1)"
TRANSLATION = "an older commented translation of the confirms guide"
