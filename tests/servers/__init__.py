"""Real servers for tests, each on a free loopback port, killed and started again as a test pleases.

Import each from its own file, so that a test needs only the driver of the server it uses.
"""
