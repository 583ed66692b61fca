"""What a run tells its user: errors, progress, summary."""
