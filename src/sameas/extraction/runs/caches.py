"""What runs leave behind for each other: checkpoints and models' replies, and which run uses which of them."""

from pathlib import Path

from sameas.extraction.pipeline.checkpoints import Used, UsedFile, read_used
from sameas.extraction.runs.checkpoint_file import CheckpointFile
from sameas.extraction.runs.checkpoint_tables import CheckpointTables, UsedRows
from sameas.extraction.runs.folder import RunFolder
from sameas.llm.memo import SCOPE as CALLS
from sameas.once.engine import Engine


class RunCaches:
    """The caches of one tenant; `memo_tenant` is under whose name models' replies are kept. Blocking."""

    def __init__(self, checkpoints: CheckpointFile | CheckpointTables, engine: Engine, *, memo_tenant: str) -> None:
        self._checkpoints = checkpoints
        self._shared = checkpoints if isinstance(checkpoints, CheckpointTables) else None
        self._engine = engine
        self._memo_tenant = memo_tenant

    def noting(self, key: str, path: Path) -> UsedFile | UsedRows:
        """Where a run writes down what it uses: in the database if other nodes see that, else in a file."""
        return UsedFile(path) if self._shared is None else UsedRows(self._shared, key)

    def forget_run(self, folder: RunFolder, *, asked_model: bool) -> bool:
        """Delete what a run used; False where this node and the database know of no such run."""
        used = read_used(folder.used_path)
        if self._shared is not None:
            # Before checkpoints were shared it stood in the file.
            noted = self._shared.used_by(folder.key)
            used = Used(
                used.checkpoints | noted.checkpoints,
                used.calls | noted.calls,
                is_known=used.is_known or noted.is_known,
            )
        if not used.is_known and not folder.exists():
            return False
        self._forget(used, asked_model=asked_model)
        return True

    def forget_uses(self, key: str) -> None:
        """A run is gone, and nobody will ask what it used."""
        if self._shared is not None:
            self._shared.forget_uses(key)

    def clear(self) -> None:
        """Delete everything."""
        self._checkpoints.clear()
        self._engine.forget_where(tenant=self._memo_tenant, scope=CALLS)

    def _forget(self, used: Used, *, asked_model: bool) -> None:
        if used.is_known:
            self._checkpoints.forget(used.checkpoints)
        else:
            self._checkpoints.clear()
        for key in used.calls:
            self._engine.forget(CALLS, key, tenant=self._memo_tenant, namespace="content")
        if asked_model and not used.is_known:
            self._engine.forget_where(tenant=self._memo_tenant, scope=CALLS)
