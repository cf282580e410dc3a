"""How the reader's weights are made. Not installed with the package."""
