"""How large the house is, and how far a call goes through it: `./run bench rooms`."""

import ast
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tests.ways import SOURCE, WAYS

BLOCK = 6
# What was counted before the rooms were drawn, on 427 modules.
BEFORE = {
    "A function on Redis": 16,
    "An HTTP request": 28,
    "Extract on the command line": 145,
    "A model call": 50,
    "A service request, to its events": 125,
}


def main() -> None:
    modules = sorted(SOURCE.rglob("*.py"))
    print(f"modules {len(modules)}, lines {sum(len(path.read_text('utf-8').splitlines()) for path in modules)}")
    by_package: Counter[str] = Counter(path.relative_to(SOURCE).parts[0] for path in modules)
    print("modules of each package: " + ", ".join(f"{name} {count}" for name, count in by_package.most_common()))
    print(f"classes of one package that share a name: {', '.join(shared_names(modules)) or 'none'}")
    print(f"repeated blocks of {BLOCK} lines and more: {repeated_blocks(modules)}")
    print(f"\n{'way':36} {'files':>6} {'before':>7}")
    for way, walk in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{way:36} {len(walk(Path(folder)).files):6} {BEFORE[way]:7}")


def shared_names(modules: list[Path]) -> list[str]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for path in modules:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[path.relative_to(SOURCE).parts[0], node.name] += 1
    return sorted(f"{package}.{name}" for (package, name), count in found.items() if count > 1)


def repeated_blocks(modules: list[Path]) -> int:
    """Places where six lines stand that stand elsewhere, too; blank lines, imports and comments do not count."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path in modules:
        lines = counted_lines(path.read_text("utf-8"))
        for at in range(len(lines) - BLOCK + 1):
            places[tuple(lines[at : at + BLOCK])].append((path, at))
    repeated = {place for found in places.values() if len(found) > 1 for place in found}
    return sum((path, at - 1) not in repeated for path, at in repeated)


def counted_lines(text: str) -> list[str]:
    imports = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in imports]
    return [line for line in lines if line and not line.startswith(("#", '"""'))]
