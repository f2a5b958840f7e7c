"""`ackscope verify`: documented semantics held against a broker, somebody's own or a private one of the lab."""
