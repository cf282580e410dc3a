"""The reader: a small encoder that is given the ontology's labels with the text. Runs on numpy alone."""
