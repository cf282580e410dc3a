"""A storm of kills over one store, and a checker of what every caller was told."""
