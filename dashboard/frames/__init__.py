"""Rows shaped for charts and tables. Pure."""
