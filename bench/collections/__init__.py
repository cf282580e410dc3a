"""`./run bench collections [resolution | side-by-side | edit | questions | growth] [DOCUMENTS]`: without a name all of them.

Growth with its 10,000 documents takes half an hour on two slow cores; a number of documents makes it shorter, and the
questions with it, which are asked at 100 statements for each document.
"""


def main(part: str = "", documents: str = "10000") -> None:
    """Print the figures of collections."""
    from bench import edit, questions
    from bench.collections import growth, resolution, side_by_side

    parts = {
        "resolution": resolution.measure,
        "side-by-side": side_by_side.measure,
        "edit": edit.main,
        "questions": lambda: questions.main(str(int(documents) * growth.STATEMENTS)),
        "growth": lambda: growth.measure(int(documents)),
    }
    if part and part not in parts:
        raise SystemExit(f"there is no part {part!r}; there are {', '.join(parts)}")
    for name, measure in parts.items():
        if part in ("", name):
            print(f"-- {name}", flush=True)
            measure()
