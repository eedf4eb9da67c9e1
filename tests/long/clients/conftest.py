# SPDX-License-Identifier: MIT
"""What numba-cuda's test classes expect of pytest's configuration."""
import pytest


@pytest.fixture(scope='class')
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
