"""The reference pages, made from what the code declares, so that the two cannot differ."""
