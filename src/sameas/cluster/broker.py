"""The broker: a message for each run that waits, and how Celery is set up for it.

Rule: a message is a wake-up and nothing else. It names a run whose request was stored; a message that is lost, late,
doubled or out of order costs time only. Runs that somebody waits for come before batches.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sameas.once.errors import StoreMisconfigured, StoreUnavailable

if TYPE_CHECKING:
    from celery import Celery  # type: ignore[import-untyped]

RUN = "sameas.run"
CHUNKS = "sameas.chunks"
QUEUE = "sameas"
Priority = Literal["interactive", "chunks", "batch"]
# RabbitMQ: the highest number first. Redis has the order the other way round.
_LEVELS: dict[Priority, int] = {"interactive": 2, "chunks": 1, "batch": 0}
_HIGHEST = max(_LEVELS.values())
# Seconds after which Redis sends a message again that was not acknowledged; the claim decides who works.
_COMES_BACK_AFTER = 300
_CONNECTS_WITHIN = 5.0
_REST = 1.0
_TRIES = {"max_retries": 3, "interval_start": 0.1, "interval_step": 0.3, "interval_max": 1.0}
_SCHEMES = ("amqp", "amqps", "redis", "rediss", "memory")


class QueueState(NamedTuple):
    """How many messages wait, and how many consumers the queue has."""

    waiting: int
    consumers: int


def make_app(broker: str) -> Celery:
    """The Celery app of a broker; `celery -A sameas.cluster.app inspect`, `purge`, Flower and the rest work with it."""
    if broker.partition("://")[0] not in _SCHEMES:
        raise StoreMisconfigured("broker must be a URL such as amqp://host// (RabbitMQ) or redis://host/1")
    try:
        from celery import Celery
    except ModuleNotFoundError as error:
        raise StoreMisconfigured("a broker needs another package: pip install 'sameas[cluster]'") from error
    app = Celery("sameas", broker=broker, set_as_current=False)
    app.conf.update(
        task_queues=[_queue(broker)],
        task_default_queue=QUEUE,
        task_default_delivery_mode=2,
        task_acks_late=True,
        task_acks_on_failure_or_timeout=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_track_started=False,
        task_send_sent_event=False,
        worker_send_task_events=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_CONNECTS_WITHIN,
        broker_transport_options=_transport_options(broker),
        accept_content=["json"],
    )
    return app


class Broker:
    """Sends runs to workers. Blocking; safe in threads, which use the connection one at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._app = make_app(url)
        self._lock = threading.Lock()
        self._silent_until = 0.0

    def send(self, name: str, *arguments: Any, priority: Priority) -> None:
        """Queue a task for any free worker; raises StoreUnavailable if the broker does not take it."""
        from kombu.exceptions import OperationalError

        level = _LEVELS[priority] if self._url.startswith("amqp") else _HIGHEST - _LEVELS[priority]
        with self._lock:
            if time.monotonic() < self._silent_until:
                raise StoreUnavailable("the broker was away a moment ago")
            try:
                self._app.send_task(
                    name,
                    args=arguments,
                    queue=QUEUE,
                    priority=level,
                    retry=True,
                    retry_policy=_TRIES,
                    ignore_result=True,
                )
            except (OperationalError, OSError) as error:
                # The next callers fail at once instead of waiting for the same.
                self._silent_until = time.monotonic() + _REST
                raise StoreUnavailable(f"the broker did not take a message: {error}") from error

    def look(self) -> QueueState:
        """How long the queue is now."""
        from kombu.connection import Connection
        from kombu.exceptions import OperationalError

        try:
            with Connection(
                self._url, connect_timeout=_CONNECTS_WITHIN, transport_options=_transport_options(self._url)
            ) as connection:
                channel = connection.default_channel
                if not self._url.startswith("amqp"):
                    # kombu keeps a list for each priority.
                    return QueueState(int(channel._size(QUEUE)), 0)
                declared = _queue(self._url).bind(channel).queue_declare(passive=False)
                return QueueState(declared.message_count, declared.consumer_count)
        except (OperationalError, OSError) as error:
            raise StoreUnavailable(f"the broker did not answer: {error}") from error

    def close(self) -> None:
        self._app.close()


def _queue(url: str) -> Any:
    """One queue, in which the highest priority comes first; RabbitMQ keeps it on the disk."""
    from kombu.entity import Exchange, Queue

    arguments = {"x-max-priority": _HIGHEST} if url.startswith("amqp") else None
    return Queue(QUEUE, Exchange(QUEUE), routing_key=QUEUE, durable=True, queue_arguments=arguments)


def _transport_options(url: str) -> dict[str, Any]:
    if url.startswith("redis"):
        return {
            "visibility_timeout": _COMES_BACK_AFTER,
            "priority_steps": list(range(_HIGHEST + 1)),
            "queue_order_strategy": "priority",
            "socket_timeout": _CONNECTS_WITHIN * 2,
            "socket_connect_timeout": _CONNECTS_WITHIN,
        }
    return {"confirm_publish": True} if url.startswith("amqp") else {}
