"""The program: `python -m longshort`. Options, results and exit codes are those of the C++ client."""
