"""Text to graph, in rooms that follow the data: text, graph, events, extractors, outputs, pipeline, runs, evaluation.

A room may look into those before it and never into those after it. Each says which of its modules may be used from
outside of extraction; `sameas.extract` and `ExtractionService.extract` (in `runs.service`) go through all of them.
"""
