"""Every Python sample of the README and the manual as a module of its own in .cache/samples, for type checkers.

What a sample uses and does not define comes from the samples above it on its page, or from `tests.types.names`: a name
that is in neither is an error. basedpyright looks into no folder like .cache unless it has a project of its own there.
"""

import ast
import builtins
import json
import re
import shutil
import symtable
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / ".cache" / "samples"
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
NAMES = "tests.types.names"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


PROJECT = {
    "include": ["samples"],
    "typeCheckingMode": "standard",
    "pythonVersion": "3.11",
    "venvPath": "..",
    "venv": ".venv",
    "extraPaths": ["../src", "..", "."],
    # Methods of samples have no annotations, and drivers annotate more than they return.
    "reportIncompatibleMethodOverride": False,
}


def blocks() -> dict[str, list[str]]:
    """The samples of each page that has any."""
    shown = {page: _BLOCK.findall((ROOT / page).read_text("utf-8")) for page in PAGES}
    return {Path(page).stem.lower().replace("-", "_"): found for page, found in shown.items() if found}


def written_out(block: str, *, known: Mapping[str, str]) -> str:
    """A sample as a module; `known` has the modules of names that the page defined before."""
    missing = _missing(block)
    head = "".join(f"from {known.get(name, NAMES)} import {name}\n" for name in sorted(missing))
    if not awaits(block):
        return f"{head}\n{block}"
    lines = (f"    {line}" if line.strip() else line for line in block.splitlines(keepends=True))
    return f"{head}\n\nasync def main() -> None:\n{''.join(lines)}"


def awaits(block: str) -> bool:
    """Whether a sample awaits something outside of a function, and so has to be in one."""
    return any(
        isinstance(node, ast.Await | ast.AsyncWith | ast.AsyncFor) for node in _outside_functions(ast.parse(block))
    )


def write() -> int:
    """Write all samples; returns how many there are."""
    shutil.rmtree(SAMPLES, ignore_errors=True)
    SAMPLES.mkdir(parents=True)
    (SAMPLES / "__init__.py").write_text('"""The samples of the manual."""\n', "utf-8")
    (SAMPLES.parent / "pyrightconfig.json").write_text(json.dumps(PROJECT), "utf-8")
    count = 0
    for page, shown in blocks().items():
        known: dict[str, str] = {}
        for number, block in enumerate(shown, 1):
            (SAMPLES / f"{page}_{number}.py").write_text(written_out(block, known=known), "utf-8")
            count += 1
            if not awaits(block):
                known |= dict.fromkeys(_defined(block), f"samples.{page}_{number}")
    return count


def _outside_functions(tree: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found += [node, *_outside_functions(node)]
    return found


def _defined(block: str) -> set[str]:
    top = symtable.symtable(block, "sample", "exec")
    return {
        each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported() or each.is_namespace()
    }


def _missing(block: str) -> set[str]:
    """What a sample uses and neither it nor Python defines."""

    def used(table: symtable.SymbolTable) -> set[str]:
        own = {
            each.get_name()
            for each in table.get_symbols()
            if each.is_referenced() and (each.is_global() or table.get_type() == "module")
        }
        return own.union(*map(used, table.get_children()))

    return used(symtable.symtable(block, "sample", "exec")) - _defined(block) - set(dir(builtins))


if __name__ == "__main__":
    print(f"{write()} samples of the manual are in {SAMPLES.relative_to(ROOT)}", file=sys.stderr)
