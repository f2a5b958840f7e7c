"""Finds clusters by what Kubernetes knows of them."""
