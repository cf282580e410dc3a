"""A function that runs once per arguments."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar

from sameas.identity.canonical import Exclusions, compile_exclusions
from sameas.once.codec import declared_result
from sameas.once.context import Context
from sameas.once.intake import Options
from sameas.once.policy import OnBusy
from sameas.once.processing_record import ProcessingRecord

if TYPE_CHECKING:
    from sameas.once.async_engine import AsyncEngine
    from sameas.once.engine import Engine

T = TypeVar("T")
P = ParamSpec("P")


class OnceOptions(TypedDict, total=False):
    """What may be said about a decorated function; `key` and `tenant` may be functions of its arguments."""

    scope: str
    key: Callable[..., str] | None
    tenant: str | Callable[..., str]
    exclude_fields: Iterable[str] | Exclusions
    lease: float | None
    retention: float | None
    on_busy: OnBusy | None
    wait_for: float | None
    result_type: Any
    tags: Iterable[str]
    audit: Mapping[str, Any]


def scope_of(function: Callable[..., Any]) -> str:
    """The default scope of a function: where it is defined."""
    name = getattr(function, "__qualname__", "")
    if not name or name.endswith("<lambda>"):
        raise ValueError(f"{function!r} has no name of its own: say scope=, a stable name for this kind of work")
    return f"{function.__module__}.{name}"


class Signature:
    """From the arguments of a call to its identity.

    The payload is the one argument of a function that takes one, and otherwise all arguments by name, defaults
    included.
    """

    def __init__(self, function: Callable[..., Any], options: OnceOptions) -> None:
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        self._owner = names[0] if names and names[0] in ("self", "cls") else None
        self._names = names[1:] if self._owner else names
        parameters = self._signature.parameters.values()
        kinds = {parameter.kind for parameter in parameters if parameter.name != self._owner}
        variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        self._single = len(self._names) == 1 and not kinds & variadic
        self._key = options.get("key")
        if self._owner is not None and self._key is None:
            raise TypeError(
                f"{function.__qualname__} is a method, and which object it belongs to is not part of the identity:"
                " say key=, a function of the object and the arguments"
            )
        self._tenant = options.get("tenant", "")
        fixed: dict[str, Any] = {name: value for name, value in options.items() if name not in ("key", "tenant")}
        fixed["scope"] = options.get("scope") or scope_of(function)
        fixed["exclude_fields"] = compile_exclusions(options.get("exclude_fields", ()))
        if fixed.get("result_type") is None:
            fixed["result_type"] = declared_result(function)
        self._fixed = fixed

    def options(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Options:
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        values = {name: bound.arguments[name] for name in self._names}
        options = dict(self._fixed)
        options["payload"] = values[self._names[0]] if self._single else values
        if self._key is not None:
            options["key"] = self._key(*arguments, **named)
        options["tenant"] = self._tenant if isinstance(self._tenant, str) else self._tenant(*arguments, **named)
        return options  # type: ignore[return-value]


class Once(Generic[P, T]):
    """A decorated function: call it for the result, `.record(...)` for where the result came from."""

    def __init__(self, engine: Engine, function: Callable[P, T], options: OnceOptions) -> None:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is async: decorate it with an AsyncEngine")
        self._engine = engine
        self._function = function
        self._signature = Signature(function, options)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.record(*args, **kwargs).result  # type: ignore[no-any-return]

    def record(self, *args: P.args, **kwargs: P.kwargs) -> ProcessingRecord:
        def work(context: Context) -> T:
            return self._function(*args, **kwargs)

        return self._engine.record(work, **self._signature.options(args, kwargs))

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else _Bound(self, instance)


class AsyncOnce(Generic[P, T]):
    """`Once`, for async functions."""

    def __init__(self, engine: AsyncEngine, function: Callable[P, Awaitable[T]], options: OnceOptions) -> None:
        self._engine = engine
        self._function = function
        self._signature = Signature(function, options)
        update_wrapper(self, function)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return (await self.record(*args, **kwargs)).result  # type: ignore[no-any-return]

    async def record(self, *args: P.args, **kwargs: P.kwargs) -> ProcessingRecord:
        def work(context: Context) -> Awaitable[T]:
            return self._function(*args, **kwargs)

        return await self._engine.record(work, **self._signature.options(args, kwargs))

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else _Bound(self, instance)


class _Bound:
    """A decorated method of one object; the object itself is not part of the identity."""

    def __init__(self, once: Once[..., Any] | AsyncOnce[..., Any], instance: Any) -> None:
        self._once = once
        self._instance = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._once(self._instance, *args, **kwargs)

    def record(self, *args: Any, **kwargs: Any) -> Any:
        return self._once.record(self._instance, *args, **kwargs)
