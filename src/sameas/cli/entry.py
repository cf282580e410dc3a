"""Where a command begins: `sameas COMMAND ...`.

Rule: only the command that is asked for is loaded, and what it needs only when it needs it, so that a replay starts
at once. An error is told in one line; `--debug` anywhere shows the traceback instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sameas.cli.errors import ExitCode, report


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and end the program."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, debug = _without_debug(given)
    try:
        _run(given)
    except BrokenPipeError:
        # Whoever read our output has enough, such as `head`; closing must not complain about it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OK)
    except KeyboardInterrupt:
        print("sameas: interrupted", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        sys.exit(report(error))


def _run(arguments: list[str]) -> None:
    if arguments[:1] == ["extract"]:
        from sameas.cli.extract import run

        sys.exit(run(arguments[1:]))
    from sameas.cli.root import build_app

    build_app(arguments)(args=arguments, prog_name="sameas")


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--debug"]
    return [*kept, *arguments[end:]], len(kept) < end
