"""The empty page: a heading, so that one can see when it is there."""

import streamlit as st

st.set_page_config(layout="wide")
st.header("Nothing here", anchor=False)
