"""Acting on the broker as a client, one probe a file, each knowing its own error.

Knows no Prometheus, files or HTTP.
"""
