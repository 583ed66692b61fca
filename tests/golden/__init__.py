"""Reference cases: how each form is read, run through the served models and judged."""
