"""Threads that read, and whose turn it is: the beginning of a text before the middle of another.

Rule: a short text does not wait behind all chunks of a long one, only for those that are being read.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from queue import PriorityQueue
from typing import Any, TypeVar

T = TypeVar("T")


class ReadingThreads:
    """So many threads, begun when there is work and ended with the process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._begun = 0
        self._numbers = count()
        self._waiting: PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = PriorityQueue()

    def submit(self, work: Callable[[], T], *, chunk: int) -> "Future[T]":
        """Do the work when it is the turn of a chunk with this number."""
        future: Future[T] = Future()
        self._waiting.put((chunk, next(self._numbers), future, work))
        with self._lock:
            if self._begun < self._threads:
                self._begun += 1
                threading.Thread(target=self._work, name=f"reader-{self._begun}", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            _, _, future, work = self._waiting.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
