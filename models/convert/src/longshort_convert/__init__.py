"""Converts official Transformer-LS checkpoints to model directories for Longshort."""
