"""Documents, the way from files to them, and the chunks of their text."""
