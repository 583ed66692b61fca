"""The asynchronous client. From all but its transport, clients/python/generate writes the synchronous one."""
