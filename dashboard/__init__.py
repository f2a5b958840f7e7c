"""The web page: reads the exporter's HTTP and the rollups.

Computes nothing that diagnosis or pipeline should.
"""
