"""Microsoft's own T-SQL parser and compiler, for checking statements without a server."""
