"""Access to the dashboard: Streamlit signs people in by OpenID Connect, this package decides who gets access."""
