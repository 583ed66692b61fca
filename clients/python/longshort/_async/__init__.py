"""The asynchronous client. clients/python/generate writes the synchronous one from all modules except transport."""
