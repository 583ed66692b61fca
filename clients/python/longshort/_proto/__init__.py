"""The messages of longshort.v1, in a descriptor pool of this package.

Stubs that a user generates from proto/ are in protobuf's default pool, where a second definition of a message would end
the program. A separate pool avoids the conflict. The classes are built at run time, so every protobuf runtime that
pyproject.toml allows works.
"""
