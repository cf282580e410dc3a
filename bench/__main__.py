"""`./run bench [NAME ...]`: without a name, every benchmark there is."""

import importlib
import inspect
import pkgutil
import sys

import bench
from bench.peers import PeerFailedError
from tests.servers.program import ProgramMissingError

TOOLS = {"measure", "__main__", "screenshots", "web_demo"}
# Measured by others already.
PARTS = {"peers", "waiters", "growth_postgres", "word"}


def main(names: list[str]) -> int:
    known = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if module.name not in TOOLS)
    name, *arguments = names or ["all"]
    if name != "all" and name not in known:
        print(f"there is no benchmark {name!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    code = 0
    for module in [one for one in known if one not in PARTS] if name == "all" else [name]:
        print(f"== {module}", flush=True)
        measure = importlib.import_module(f"bench.{module}").main
        try:
            inspect.signature(measure).bind(*arguments)
        except TypeError as error:
            print(f"{module} takes other arguments: {error}", file=sys.stderr)
            return 2
        try:
            code = measure(*arguments) or code
        except (ProgramMissingError, PeerFailedError) as error:
            print(error, file=sys.stderr)
            code = 1
        except SystemExit as end:
            # One that gives up does not end those after it.
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            code = end.code if isinstance(end.code, int) else 1 if end.code else code
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
