"""What the user of a run reads: errors, progress, summary."""
