"""Finds input files, reads their rows, and cuts them into shards."""
