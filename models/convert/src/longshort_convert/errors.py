"""The one error that a user meets."""


class ConvertError(Exception):
    """The checkpoint or a file beside it cannot be converted; the message names what is wrong and where."""
