"""Who may see the page: Streamlit signs people in by OpenID Connect, this room tells who of them comes in."""
