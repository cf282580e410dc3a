"""`./run bench stores`: what the stores cost beside bare commands on the same drivers, and beside peers."""


def main(*arguments: str) -> None:
    """The command; imported here because it uses benchmarks which use parts of this folder."""
    from bench.stores.command import main as command

    command(*arguments)
