"""Questions to a collection: SPARQL, search, pages, paths, a model's help; and publishing it elsewhere."""
