"""What the page's server runs for every viewer and every change; started by `ackscope dashboard`."""

from dashboard.views import now

now.render()
