"""The figures as a page of Markdown: the same text is printed and kept in `docs/benchmarks.md`.

It says by which command, on which versions and when they came about, and nothing that names the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.growth_postgres import ALL, AT_MOST, Growth
from bench.stores.turns import Figure
from bench.waiters import Served

Rows = Sequence[Sequence[str]]

INTRODUCTION = """\
Floors, sameas and peers take short turns in one run; a time is the median of {rounds} rounds, and in each the median
of {turns} turns of {calls} calls; a share is the median of the shares of each round. The ratios mean something; the
times are this machine's.

The floor is what one writes without a promise on the same driver: on Redis SET NX and SET for fresh work and GET for a
replay, on PostgreSQL INSERT and UPDATE, and SELECT by primary key. The store is claim and complete; the engine is
`Engine.run` with an explicit key and a small JSON result, encoded and decoded. Where the content is the key, a decorated
function is given a small order, and the floor hashes the same order (`json.dumps(sort_keys=True)`, SHA-256). Peers are used as their manuals say, in
a process of their own, and compared with redis-py in that process. Round trips are requests that the server itself
saw, per call.

A request between two cores costs more than twice of what it costs on one, and the scheduler would decide for each
process anew which it is; so clients and server are placed while they take turns, one core unless `--placement` says
otherwise. On one core the floor is at its quickest.

Redis appends every write to its file and syncs it every second (`appendonly yes`, `appendfsync everysec`); PostgreSQL
syncs every commit. Both are the same for floors, sameas and peers.
"""


@dataclass(frozen=True)
class Circumstances:
    """By which command, on what and when the figures came about."""

    command: str
    on: Mapping[str, str]
    rounds: int
    turns: int
    calls: int


def page(
    about: Circumstances,
    tables: Mapping[str, Sequence[Figure]],
    missing: Mapping[str, str],
    served: Sequence[Served],
    grown: Growth,
) -> str:
    """The whole page."""
    parts = [
        "# Benchmarks",
        f"Printed by `{about.command}`, which also writes this page.",
        _table(("", ""), list(about.on.items())),
        INTRODUCTION.format(rounds=about.rounds, turns=about.turns, calls=about.calls).strip(),
    ]
    for title, figures in tables.items():
        parts += [f"## {title}", _figures(figures)]
    if missing:
        parts += ["## Not measured", _table(("peer", "reason"), list(missing.items()))]
    parts += [
        "## Waiting for somebody else's work, Redis",
        _waiting(served),
        "## Growth, PostgreSQL",
        _growth(grown),
    ]
    return "\n\n".join(parts) + "\n"


def _figures(figures: Sequence[Figure]) -> str:
    counted = any(figure.round_trips is not None for figure in figures)
    rows = []
    for figure in figures:
        row = [figure.name, f"{figure.seconds * 1e6:.1f}", _share(figure.share)]
        if counted:
            row.append("" if figure.round_trips is None else f"{figure.round_trips:.3g}")
        rows.append([*row, _target(figure)])
    titles = ["", "us per call", "of the floor"] + (["round trips"] if counted else []) + ["target"]
    return _table(titles, rows)


def _share(share: float | None) -> str:
    if share is None:
        return ""
    return f"{share:.1f}x" if share >= 2 else f"{share:.1%}"


def _target(figure: Figure) -> str:
    if figure.at_least is None or figure.share is None:
        return ""
    wanted = f"{figure.at_least:.0%}" if figure.at_least < 2 else f"{figure.at_least:g}x"
    return f"at least {wanted}: {_verdict(reached=figure.share >= figure.at_least)}"


def _waiting(served: Sequence[Served]) -> str:
    """Times from the return of the work, which ran once."""
    rows = [
        [
            one.name,
            f"{one.requests:g}",
            f"{one.p99 * 1e3:.1f}",
            f"{one.last * 1e3:.1f}",
            f"99 % within {one.within * 1e3:.0f} ms: {_verdict(reached=one.reached)}",
        ]
        for one in served
    ]
    titles = ("", "requests for the record", "99 % served, ms", "all served, ms", "target")
    return (
        _table(titles, rows) + "\n\nThe clock starts when the work returns; the work ran once. Medians of the rounds."
    )


def _growth(grown: Growth) -> str:
    rows = [
        [f"{grown.few:,} records", f"{grown.among_few * 1e6:.1f}", "", ""],
        [
            f"{grown.many:,} records",
            f"{grown.among_many * 1e6:.1f}",
            f"{grown.times:.2f}x",
            f"at most {AT_MOST}x: {_verdict(reached=grown.reached)}",
        ],
    ]
    text = _table(("replay among", "us per call", "of the few", "target"), rows)
    if grown.many < ALL:
        text += f"\n\nThe target is meant for {ALL:,} records: `./run bench stores --growth` measures with those."
    return text


def _verdict(*, reached: bool) -> str:
    return "yes" if reached else "MISSED"


def _table(titles: Sequence[str], rows: Rows) -> str:
    cells = [list(titles), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(titles))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
