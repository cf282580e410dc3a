"""Queues: tasks that run once. The adapter of a queue is imported by its own name, such as `sameas.tasks.celery`."""
