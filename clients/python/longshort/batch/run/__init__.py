"""Runs the work: from the arguments of a call to answered and written shards."""
