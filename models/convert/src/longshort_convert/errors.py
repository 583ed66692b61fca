"""The error that the converter reports to its user."""


class ConvertError(Exception):
    """The checkpoint or another input cannot be converted. The message names the file and the problem."""
