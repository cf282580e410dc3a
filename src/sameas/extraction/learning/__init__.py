"""The extractor that learns from examples."""
