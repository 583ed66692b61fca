"""What holds for all tests."""

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Programs that tests start take Ctrl-C, although a shell that starts the tests with & makes them ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: left to the stage slow of tests/run")
