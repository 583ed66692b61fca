"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Programs that tests start take Ctrl-C, though whoever started the tests with & has them ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
