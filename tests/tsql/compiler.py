"""Checks T-SQL with ScriptDom and DacFx. Runs in a process of its own, because a process can load only one .NET.

Reads JSON from its input: {"folder": ..., "schema": [script, ...], "batches": {name: {"sql": ..., "parameters":
{name: type}}}}. Writes JSON: {name: [problem, ...]}, with only those that have any. Every batch is parsed as it is, and
compiled as the body of a procedure beside the schema, so that a column that is not there is found.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    task = json.load(sys.stdin)
    folder = Path(task["folder"])
    tools = folder / "mssqlcli" / "mssqltoolsservice" / "bin"
    _load_dotnet(folder, tools)
    problems: dict[str, list[str]] = {}
    for number, script in enumerate(task["schema"], 1):
        problems[f"schema {number}"] = _parsed(script)
    for name, batch in task["batches"].items():
        problems[name] = _parsed(batch["sql"])
    for name, found in _compiled(task["schema"], task["batches"]).items():
        problems.setdefault(name, []).extend(found)
    json.dump({name: found for name, found in problems.items() if found}, sys.stdout)


def _load_dotnet(folder: Path, tools: Path) -> None:
    import pythonnet  # type: ignore[import-not-found]
    from clr_loader import get_coreclr  # type: ignore[import-not-found]

    root = folder / "dotnetcore2" / "bin"
    version = next((root / "shared" / "Microsoft.NETCore.App").iterdir()).name
    config = folder / "checker.runtimeconfig.json"
    framework = {"name": "Microsoft.NETCore.App", "version": version}
    config.write_text(json.dumps({"runtimeOptions": {"tfm": "netcoreapp3.1", "framework": framework}}))
    pythonnet.set_runtime(get_coreclr(runtime_config=str(config), dotnet_root=str(root)))
    import clr  # type: ignore[import-not-found]

    sys.path.append(str(tools))
    for library in ("TransactSql.ScriptDom", "Dac", "Dac.Extensions"):
        clr.AddReference(str(tools / f"Microsoft.SqlServer.{library}.dll"))


def _parsed(script: str) -> list[str]:
    from Microsoft.SqlServer.TransactSql.ScriptDom import TSql130Parser  # type: ignore[import-not-found]
    from System.IO import StringReader  # type: ignore[import-not-found]

    parser = TSql130Parser(True)
    result: Any = parser.Parse(StringReader(script))
    errors = result[1] if isinstance(result, tuple) else []
    return [f"line {error.Line}: {error.Message}" for error in errors]


def _compiled(schema: list[str], batches: dict[str, Any]) -> dict[str, list[str]]:
    from Microsoft.SqlServer.Dac.Model import (  # type: ignore[import-not-found]
        SqlServerVersion,
        TSqlModel,
        TSqlModelOptions,
    )

    model = TSqlModel(SqlServerVersion.Sql130, TSqlModelOptions())
    found: dict[str, list[str]] = {}
    for number, script in enumerate(schema, 1):
        _added(model, script, f"schema {number}", found)
    for name, batch in batches.items():
        words = ", ".join(f"@{parameter} {kind}" for parameter, kind in batch["parameters"].items())
        _added(
            model,
            f"CREATE PROCEDURE [dbo].[check_{name}] {words} AS\nBEGIN\n{batch['sql']}\nEND",
            name,
            found,
        )
    for message in model.Validate():
        found.setdefault("model", []).append(f"{message.Prefix}{message.Number}: {message.Message}")
    return found


def _added(model: Any, script: str, name: str, found: dict[str, list[str]]) -> None:
    from Microsoft.SqlServer.Dac.Model import TSqlObjectOptions

    try:
        model.AddOrUpdateObjects(script, f"{name}.sql", TSqlObjectOptions())
    except Exception as error:
        found.setdefault(name, []).append(str(error).strip())


if __name__ == "__main__":
    main()
