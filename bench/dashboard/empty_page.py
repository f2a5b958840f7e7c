"""The empty page: only a heading, to detect when it is drawn."""

import streamlit as st

st.set_page_config(layout="wide")
st.header("Nothing here", anchor=False)
