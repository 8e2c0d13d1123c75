"""What the tests of a widget in its own page share."""

import pytest

from tests.site.harness import wake


@pytest.fixture
def live(page, addresses):
    """The page of a test file (`harness.page_of`), over http, its widgets alive."""
    return wake(page, addresses["http"])
