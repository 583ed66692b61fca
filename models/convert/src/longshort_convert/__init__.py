"""Turns official Transformer-LS checkpoints into model directories for Longshort."""
