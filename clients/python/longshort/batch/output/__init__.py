"""Writes the results of shards, and the manifest that lists them."""
