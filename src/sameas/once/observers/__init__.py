"""Observers for the libraries that people have: structlog, prometheus-client, OpenTelemetry, and an audit trail.

Import the one you want from its own module; this package imports none of the libraries.
"""
