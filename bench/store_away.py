"""The store is away while 32 accepted runs wait or go on: Redis, then PostgreSQL, killed, stopped and behind a network that
swallows what is sent, for 4 to 35 seconds. Printed is how many end well by themselves, how soon, and what was done twice.

    ./run bench store_away [SECONDS,... [KIND [HOW]]]
"""

import tempfile
from pathlib import Path

from tests.storm.store_away import HOWS, Kind, store_away

LENGTHS = "4,15,35"
KINDS: tuple[Kind, ...] = ("redis", "postgres")


def main(lengths: str = LENGTHS, only: str = "", only_how: str = "") -> int:
    code = 0
    for kind in KINDS:
        for how in HOWS:
            for seconds in map(float, lengths.split(",")):
                if only not in ("", kind) or only_how not in ("", how):
                    continue
                with tempfile.TemporaryDirectory() as home:
                    report = store_away(Path(home), kind=kind, how=how, seconds=seconds)
                verdict = "" if report.is_clean else f"  MISSED {report}"
                print(f"{kind} {how} for {seconds:g} s: {report.line()}{verdict}", flush=True)
                code = code or int(not report.is_clean)
    return code
