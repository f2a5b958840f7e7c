"""Plotly figures and SVG sparklines. Pure."""
