"""The life of a run: its record, its folder or objects, checkpoints, results, and what reviewers decide about it.

From outside: `service`, `library`, `folder`, `metadata`, `record`, `results`, `review`, `view`, `work`, `shared_runs`,
`run_objects`, `durable_file`.
"""
