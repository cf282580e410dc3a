"""The weights of the reader, as files; sameas finds them by the name of this package."""
