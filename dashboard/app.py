"""What the page's server runs for every viewer and every change; started by `ackscope dashboard`."""

from dashboard.login import gate
from dashboard.pages import PAGES

gate.run(PAGES)
