"""A text in the one case that word lists have.

Rule: what a pattern takes for the same without regard to case is the same here: the long s, the letters i of the
Turkish alphabet and the Kelvin sign are matched, and so must be found in the lists.
"""


def plain_case(said: str) -> str:
    """As it stands in a list; the length may change."""
    return said if said.isascii() and said.islower() else said.casefold().replace("\u0307", "").replace("\u0131", "i")
