"""What the page's server runs for every viewer and every change; started by `ackscope dashboard`."""

from dashboard.auth import sign_in_page
from dashboard.pages import PAGES

sign_in_page.run(PAGES)
