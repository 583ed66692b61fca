"""Independent references, in plain numpy and float64, of what the served models compute."""
