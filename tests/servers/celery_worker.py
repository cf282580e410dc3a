"""A real Celery worker: a process of its own with the tasks of `tests.servers.celery_tasks`, killed as a test pleases.

It logs to its folder, and what its tasks did is in a journal that outlives it.
"""

import gc
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from kombu import pools

from tests.servers.celery_tasks import make_app, read_journal
from tests.servers.server import Server

ROOT = Path(__file__).resolve().parents[2]


class CeleryWorker(Server):
    """One worker on one broker; `app` is the sender's side of the same app."""

    name: ClassVar[str] = "celery"

    def __init__(
        self, *, broker: str, results: str, store: str, pool: str, concurrency: int, options: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._broker = broker
        self._pool = pool
        self._concurrency = concurrency
        self._settings = {
            "broker": broker,
            "results": results,
            "store": store.replace("FOLDER", str(self.folder)),
            "queue": f"sameas-{self.port}",
            "folder": str(self.folder),
            "options": dict(options),
        }
        self.app = make_app(self._settings)

    @property
    def url(self) -> str:
        return self._broker

    def start_with_the_other_pool(self) -> None:
        """After a kill: the same worker with threads instead of processes, or the other way round."""
        self._pool = {"prefork": "threads", "threads": "prefork"}[self._pool]
        self.start()

    def close(self) -> None:
        super().close()
        # Results that nobody holds any more unsubscribe when they go: now, while their server is there.
        gc.collect()
        # What the sender's side has open; Celery leaves it to the end of the process.
        pools.reset()
        self.app.backend.result_consumer.stop()
        self.app.backend.client.close()
        self.app.close()

    def prepare(self) -> None:
        (self.folder / "gates").mkdir(exist_ok=True)

    def command(self) -> Sequence[str]:
        words = ["worker", "--pool", self._pool, "--concurrency", str(self._concurrency), "--loglevel", "INFO"]
        name = ["--hostname", f"worker-{self.port}@localhost"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return [sys.executable, "-m", "tests.servers.celery_tasks", json.dumps(self._settings), *words, *name, *quiet]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def is_ready(self) -> bool:
        return f"worker-{self.port}@localhost ready." in self.recent_log

    def open_gate(self, name: str) -> None:
        """Let the tasks that wait at this gate go on."""
        (self.folder / "gates" / name).touch()

    def journal(self, **wanted: Any) -> list[dict[str, Any]]:
        """What the tasks wrote down, in order, as far as it fits."""
        return [entry for entry in read_journal(self.folder) if wanted.items() <= entry.items()]

    def count(self, **wanted: Any) -> int:
        return len(self.journal(**wanted))

    def replays(self, task_id: str) -> int:
        """How many deliveries of a task were answered from its record, by the worker's log."""
        return self.log.count(f"[{task_id}] replay=true")

    def received(self, task_id: str) -> int:
        """How many deliveries of a task reached the worker, by its log."""
        return self.log.count(f"[{task_id}] received")
