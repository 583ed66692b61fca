"""The synchronous client. All but its transport is generated from longshort/_async."""
