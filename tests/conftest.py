"""What every test may ask for."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.servers.fixtures"]

# A shell has what runs in the background ignore Ctrl-C, and what a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What a test means by no extractor is the quick one; tests of the reader ask for it.
os.environ.setdefault("SAMEAS_EXTRACTOR", "lexicon")

settings.register_profile("ci", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("laptop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") == "true" else "laptop")


@pytest.fixture
def anyio_backend():
    return "asyncio"
