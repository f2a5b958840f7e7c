"""Generators of the reference pages, from the declarations in the code."""
