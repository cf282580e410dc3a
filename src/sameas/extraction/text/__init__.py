"""Documents, files to documents, and chunks.

From outside: `document`, `chunking`, `inputs`.
"""
