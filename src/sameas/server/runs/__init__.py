"""Runs that belong to the service: accepted, queued, worked on, deleted."""
