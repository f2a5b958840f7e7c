"""The Streamlit script, run for every viewer and every interaction; served by `ackscope dashboard`."""

from dashboard.auth import sign_in_page
from dashboard.pages import PAGES

sign_in_page.run(PAGES)
