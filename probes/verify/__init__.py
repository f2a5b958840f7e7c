"""The documented semantics of acknowledgements and confirms, checked against a live broker."""
