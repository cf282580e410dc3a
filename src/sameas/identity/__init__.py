"""Who is asking, and for what. Pure: nothing here does I/O."""
