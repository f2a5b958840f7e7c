"""The Prometheus endpoints of the nodes: a second source of figures beside the management API."""
