"""What the tests of the page in trouble share: one broker, one exporter, one page, seen once."""

import pytest

from tests.dashboard.browser import chromium
from tests.e2e.drama import Drama, live
from tests.e2e.trouble import in_trouble


@pytest.fixture(scope="session")
def drama() -> Drama:
    """All that was seen; by then everything has ended."""
    with in_trouble() as trouble, chromium() as browser:
        return live(trouble, browser)
