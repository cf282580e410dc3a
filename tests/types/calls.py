"""What a type checker says about calls of the engines: results keep their types, and mistakes are found.

A line with an ignored error is a mistake that must be found: without it, the comment itself would be the error.
"""

from dataclasses import dataclass
from typing import assert_type

from sameas import (
    AsyncEngine,
    AsyncIdempotentProcessor,
    Context,
    Engine,
    IdempotentProcessor,
    Policy,
    ProcessingRecord,
    open_async_store,
    open_store,
)


@dataclass
class Order:
    number: int


@dataclass
class Receipt:
    total: float


engine = Engine(open_store("memory://"), policies={"charge": Policy(keep_errors=(ValueError,))})
tasks = AsyncEngine(open_async_store("sqlite:///a.db", busy_timeout=2.0, synchronous="NORMAL"))


def charge(context: Context) -> Receipt:
    return Receipt(1.0)


def charge_order(context: Context, order: Order) -> Receipt:
    return Receipt(1.0)


async def charge_soon(context: Context) -> Receipt:
    return Receipt(1.0)


async def charge_order_soon(context: Context, order: Order) -> Receipt:
    return Receipt(1.0)


def threads(orders: list[Order]) -> None:
    assert_type(engine.run(charge, scope="charge", key="1"), Receipt)
    assert_type(engine.run(lambda ctx: len(ctx.key), scope="charge", key="1", connection=object()), int)
    assert_type(engine.record(charge, scope="charge", payload=orders), ProcessingRecord[Receipt])
    assert_type(engine.record(charge, scope="charge", payload=orders).result, Receipt)
    assert_type(engine.record(charge, scope="charge", payload=orders).answer(), Receipt)
    assert_type(engine.run_many(charge_order, orders, scope="charge"), list[Receipt])
    assert_type(engine.record_many(charge_order, orders, scope="charge"), list[ProcessingRecord[Receipt]])

    engine.run(charge, key="1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    engine.run(charge, scope="charge", on_busy="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    engine.run(charge_order, scope="charge", key="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    engine.run_many(charge_order, ["a"], scope="charge")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def in_tasks(orders: list[Order]) -> None:
    assert_type(await tasks.run(charge_soon, scope="charge", key="1"), Receipt)
    assert_type(await tasks.run(charge, scope="charge", key="1"), Receipt)
    # Of a lambda mypy does not say whether it is async, and so it is anything.
    await tasks.run(lambda ctx: charge_soon(ctx), scope="charge", key="1")
    assert_type(await tasks.record(charge_soon, scope="charge", payload=orders), ProcessingRecord[Receipt])
    assert_type(await tasks.run_many(charge_order_soon, orders, scope="charge", concurrency=4), list[Receipt])
    assert_type(
        await tasks.record_many(charge_order_soon, orders, scope="charge", keys=["1"]),
        list[ProcessingRecord[Receipt]],
    )


@engine.once(scope="charge", exclude_fields={"sent_at"})
def decorated(order: Order, *, currency: str = "EUR") -> Receipt:
    return Receipt(1.0)


@tasks.once(scope="charge", retention=None)
async def decorated_soon(order: Order, *, currency: str = "EUR") -> Receipt:
    return Receipt(1.0)


class Till:
    """Methods keep their signature less `self`, as those of Python do."""

    def __init__(self, name: str) -> None:
        self.name = name

    @engine.once(scope="till", key=lambda till, order: f"{till.name}-{order.number}")
    def charge(self, order: Order) -> Receipt:
        return Receipt(1.0)

    @tasks.once(scope="till", key=lambda till, order: f"{till.name}-{order.number}")
    async def charge_soon(self, order: Order) -> Receipt:
        return Receipt(1.0)


async def decorations(till: Till, order: Order) -> None:
    assert_type(decorated(order, currency="USD"), Receipt)
    assert_type(decorated.record(order), ProcessingRecord[Receipt])
    assert_type(await decorated_soon(order), Receipt)
    assert_type(await decorated_soon.record(order), ProcessingRecord[Receipt])
    assert_type(till.charge(order), Receipt)
    assert_type(till.charge.record(order), ProcessingRecord[Receipt])
    assert_type(await till.charge_soon(order), Receipt)
    assert_type(await till.charge_soon.record(order), ProcessingRecord[Receipt])
    assert_type(Till.charge(till, order), Receipt)

    decorated("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    decorated(order, money="USD")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    till.charge("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    till.charge()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await till.charge_soon(till, order)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]


def consume(order: Order) -> Receipt:
    return Receipt(1.0)


async def consume_soon(order: Order) -> Receipt:
    return Receipt(1.0)


async def processors(order: Order) -> None:
    processor = IdempotentProcessor(consume, store=open_store("redis://localhost", strict=False, wait=1))
    assert_type(processor.process(order), ProcessingRecord[Receipt])
    assert_type(processor.process_many([order]), list[ProcessingRecord[Receipt]])
    later = AsyncIdempotentProcessor(consume_soon, store=open_async_store("memory://"))
    assert_type(await later.process(order), ProcessingRecord[Receipt])
    assert_type(await later.process_many([order]), list[ProcessingRecord[Receipt]])

    processor.process("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def stores() -> None:
    open_store("postgresql+psycopg://localhost/shop", pool_size=4, timeout=1.0, lock_timeout=0.5, create=False)
    open_store("memory://", clock=lambda: 0)

    open_store("redis://localhost", stict=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    open_store("redis://localhost", wait="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def bare(record: ProcessingRecord) -> bool:
    """Without its parameter it is a record of anything, as it was before it had one."""
    return record.was_replay
