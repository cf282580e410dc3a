"""A document, an ontology and examples that come with the package, to try it on."""
