"""The probe that speaks the stream protocol, and the connection that it uses."""
