"""The messages of longshort.v1, in a descriptor pool of this package's own.

Whoever generates stubs from proto/ himself has longshort.v1 in protobuf's default pool. There, two files that define
one message end the program; here, they do not meet. No generated code means no check of its version either: any
runtime from the oldest that pyproject.toml names does.
"""
