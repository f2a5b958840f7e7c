"""The only I/O of the page: the exporter over HTTP, the rollups from files. Nothing in here knows Streamlit."""
