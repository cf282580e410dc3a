"""A function that runs once per arguments."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import update_wrapper
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypedDict, TypeVar, overload

from sameas.identity.canonical import Exclusions, compile_exclusions
from sameas.once.call_builder import Options
from sameas.once.codec import declared_result
from sameas.once.context import Context
from sameas.once.naming import scope_of
from sameas.once.policy import OnBusy
from sameas.once.processing_record import ProcessingRecord
from sameas.once.unbegun import refuse_async

if TYPE_CHECKING:
    from sameas.once.async_engine import AsyncEngine
    from sameas.once.engine import Engine

T = TypeVar("T")
P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")


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
                f"{getattr(function, '__qualname__', function)} is a method, and which object it belongs to is not part"
                " of the identity: say key=, a function of the object and the arguments"
            )
        self._tenant = options.get("tenant", "")
        fixed: dict[str, Any] = {name: value for name, value in options.items() if name not in ("key", "tenant")}
        fixed["scope"] = options.get("scope") or scope_of(function)
        fixed["exclude_fields"] = compile_exclusions(options.get("exclude_fields", ()))
        if fixed.get("result_type") is None:
            fixed["result_type"] = declared_result(function)
        if isinstance(self._tenant, str):
            fixed["tenant"] = self._tenant
        self._fixed = fixed
        # One argument that may be given by its place, and nothing to be computed from it: most functions are such.
        self._is_plain = (
            self._single
            and self._owner is None
            and self._key is None
            and isinstance(self._tenant, str)
            and inspect.Parameter.KEYWORD_ONLY not in kinds
        )
        # What is not said need not be passed on.
        self._plain = {name: value for name, value in fixed.items() if value or name == "retention"}

    def payload(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """What the function is asked for."""
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        values = {name: bound.arguments[name] for name in self._names}
        return values[self._names[0]] if self._single else values

    def options(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Options:
        if self._is_plain and len(arguments) == 1 and not named:
            return {**self._plain, "payload": arguments[0]}  # type: ignore[typeddict-item]
        options = dict(self._fixed)
        options["payload"] = self.payload(arguments, named)
        if self._key is not None:
            options["key"] = self._key(*arguments, **named)
        options["tenant"] = self._tenant if isinstance(self._tenant, str) else self._tenant(*arguments, **named)
        return options  # type: ignore[return-value]


class Once(Generic[P, T]):
    """A decorated function: call it for the result, `.record(...)` for where the result came from."""

    def __init__(self, engine: Engine, function: Callable[P, T], options: OnceOptions) -> None:
        refuse_async(function, "decorate it with an AsyncEngine")
        self._engine = engine
        self._function = function
        self._signature = Signature(function, options)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        function = self._function

        def work(context: Context) -> T:
            return function(*args, **kwargs)

        return self._engine.answer(work, self._signature.options(args, kwargs))

    def record(self, *args: P.args, **kwargs: P.kwargs) -> ProcessingRecord[T]:
        """The call with where its result came from. Raises what `Engine.record` raises."""

        def work(context: Context) -> T:
            return self._function(*args, **kwargs)

        return self._engine.record(work, **self._signature.options(args, kwargs))

    def __reduce__(self) -> str:
        # By its name, as a function is: another process has an engine of its own.
        return _name_of(self._function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: Once[Concatenate[S, Q], T], instance: S, owner: type) -> BoundOnce[Q, T]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else BoundOnce(self, instance)


class AsyncOnce(Generic[P, T]):
    """`Once`, for async functions."""

    def __init__(self, engine: AsyncEngine, function: Callable[P, Awaitable[T]], options: OnceOptions) -> None:
        self._engine = engine
        self._function = function
        self._signature = Signature(function, options)
        update_wrapper(self, function)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        function = self._function

        def work(context: Context) -> Awaitable[T]:
            return function(*args, **kwargs)

        return await self._engine.answer(work, self._signature.options(args, kwargs))

    async def record(self, *args: P.args, **kwargs: P.kwargs) -> ProcessingRecord[T]:
        """The call with where its result came from. Raises what `AsyncEngine.record` raises."""

        def work(context: Context) -> Awaitable[T]:
            return self._function(*args, **kwargs)

        return await self._engine.record(work, **self._signature.options(args, kwargs))

    def __reduce__(self) -> str:
        return _name_of(self._function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: AsyncOnce[Concatenate[S, Q], T], instance: S, owner: type) -> AsyncBoundOnce[Q, T]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else AsyncBoundOnce(self, instance)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", "")
    if "<" in name or not name:
        raise PicklingError(f"{name or function!r} cannot be pickled: define it at the top of a module or class")
    return name


class BoundOnce(Generic[P, T]):
    """A decorated method of one object; the object itself is not part of the identity."""

    def __init__(self, once: Once[..., T], instance: Any) -> None:
        self._once = once
        self._instance = instance

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._instance, _method_of(self._once))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._once(self._instance, *args, **kwargs)

    def record(self, *args: P.args, **kwargs: P.kwargs) -> ProcessingRecord[T]:
        """The call with where its result came from. Raises what `Engine.record` raises."""
        return self._once.record(self._instance, *args, **kwargs)


class AsyncBoundOnce(Generic[P, T]):
    """`BoundOnce`, for async methods."""

    def __init__(self, once: AsyncOnce[..., T], instance: Any) -> None:
        self._once = once
        self._instance = instance

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._instance, _method_of(self._once))

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._once(self._instance, *args, **kwargs)

    async def record(self, *args: P.args, **kwargs: P.kwargs) -> ProcessingRecord[T]:
        """The call with where its result came from. Raises what `AsyncEngine.record` raises."""
        return await self._once.record(self._instance, *args, **kwargs)


def _method_of(once: Any) -> str:
    return str(once.__name__)
