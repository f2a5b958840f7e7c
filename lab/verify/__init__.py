"""`ackscope verify`: check documented semantics against a broker of the user or a private one of the lab."""
