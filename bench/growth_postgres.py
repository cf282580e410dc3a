"""`./run bench growth_postgres [--records 10000000]`: the cost of a replay in PostgreSQL among few and among many.

Records are put there by one statement, which computes the same digests as `record_digest`; keys are asked for at
random over all of them. A replay that runs the work is an error, so that a wrong digest cannot pass for a quick one.
"""

import argparse
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter

import psycopg

from bench.stores.placement import Placement, placed
from bench.stores.turns import Contestant, Effort, contest, sync_turn
from sameas.connections import open_store
from sameas.once.engine import Engine
from tests.servers.postgres import PostgresServer

SCOPE = "growth"
FEW = 10_000
MANY = 1_000_000
ALL = 10_000_000
AT_MOST = 1.5
EFFORT = Effort(rounds=5, turns=100, calls=5)
RESULT = {"order": 123, "status": "paid"}
# Room for the log of the fill; the rest are the server's defaults.
SERVER_OPTIONS = {"max_wal_size": "8GB"}

# In the order of the primary key, which fills its index from one end.
FILL = """
INSERT INTO sameas_records ({columns})
SELECT {values} FROM (
  SELECT n, sha256(convert_to(
    '0:' || octet_length({scope}) || ':' || {scope} || octet_length(n::text) || ':' || n::text || '6:client', 'UTF8'
  )) AS digest
  FROM generate_series(1, {last}) AS n ORDER BY 2
) AS made, (SELECT * FROM sameas_records LIMIT 1) AS one
"""


@dataclass(frozen=True)
class Growth:
    """Seconds for a replay among few and among many records, and how much longer the second takes."""

    few: int
    many: int
    among_few: float
    among_many: float
    times: float
    filled_in: float

    @property
    def reached(self) -> bool:
        return self.times <= AT_MOST


def growth(
    server: PostgresServer, *, many: int = MANY, effort: Effort = EFFORT, placement: Placement = "one-core"
) -> Growth:
    """Two databases on one server, asked in turns."""
    # Before the connections are made: a server process of each is placed with us.
    with placed(placement, server=server.pid), ExitStack() as until:
        small, _ = _filled(server, "growth_few", FEW, until)
        large, filled_in = _filled(server, "growth_many", many, until)
        figures = contest(
            [
                Contestant("few", sync_turn(_replay(small, FEW))),
                Contestant("many", sync_turn(_replay(large, many)), floor="few"),
            ],
            effort,
        )
    few, grown = figures
    assert grown.share is not None
    return Growth(FEW, many, few.seconds, grown.seconds, 1 / grown.share, filled_in)


def _replay(engine: Engine, count: int) -> Callable[[], object]:
    numbers = random.Random(count)

    def never(_: object) -> object:
        raise AssertionError("a record that is there was not found")

    return lambda: engine.run(never, scope=SCOPE, key=str(numbers.randrange(count)))


def _filled(server: PostgresServer, name: str, count: int, until: ExitStack) -> tuple[Engine, float]:
    """An engine on a database of so many finished records, and the seconds it took to put them there."""
    url = server.create_database(name)
    until.callback(server.drop_database, name)
    store = until.enter_context(open_store(url))
    engine = Engine(store)
    engine.run(lambda _: RESULT, scope=SCOPE, key="0")
    began = perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'sameas_records' ORDER BY 1"
        )
        columns = [str(column) for (column,) in found if column != "id"]
        changed = {"digest": "made.digest", "key": "made.n::text"}
        statement = FILL.format(
            columns=", ".join(columns),
            values=", ".join(changed.get(column, f"one.{column}") for column in columns),
            scope=f"'{SCOPE}'",
            last=count - 1,
        )
        connection.execute(statement.encode())
        # What the server would do by itself soon after, in the middle of the contest.
        connection.execute("VACUUM ANALYZE sameas_records")
        connection.execute("CHECKPOINT")
    return engine, perf_counter() - began


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="./run bench growth_postgres")
    parser.add_argument("--records", type=int, default=MANY)
    chosen = parser.parse_args(arguments)
    with PostgresServer(options=SERVER_OPTIONS) as server:
        grown = growth(server, many=chosen.records)
    print(
        f"replay among {grown.few:,} records {grown.among_few * 1e6:.1f} us, among {grown.many:,} "
        f"{grown.among_many * 1e6:.1f} us: {grown.times:.2f}x (at most {AT_MOST}x: "
        f"{'yes' if grown.reached else 'MISSED'}; filled in {grown.filled_in:.0f} s)"
    )


if __name__ == "__main__":
    main()
