"""All I/O of the dashboard: the exporter over HTTP, rollups and notes from files. Does not depend on Streamlit."""
