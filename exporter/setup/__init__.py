"""Sets up the access to a broker for `ackscope init`: what is there, what is missing, and how to make it."""
