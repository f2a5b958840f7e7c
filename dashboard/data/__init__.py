"""The only I/O of the dashboard: the exporter over HTTP, rollups and notes from files. Knows nothing of Streamlit."""
