"""A function that runs once per arguments, and its default scope, which is where it is defined.

A name that does not tell a function from others is refused: two programs have a `__main__`, each call of a function
makes its inner functions anew, a lambda has no name, a method's does not say of which object it is, and of two
functions with one name in a module only one can be meant.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import update_wrapper
from pickle import PicklingError
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypedDict, TypeVar, overload

from sameas.identity.canonical import Exclusions, compile_exclusions
from sameas.once.call_builder import Options
from sameas.once.codec import declared_result
from sameas.once.context import Context
from sameas.once.policy import OnBusy
from sameas.once.record import ProcessingRecord
from sameas.once.steps import refuse_async

if TYPE_CHECKING:
    from sameas.once.async_engine import AsyncEngine
    from sameas.once.engine import Engine

T = TypeVar("T")
P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")

_SAY = "say scope=, a stable name for this kind of work"
# Of other values only the objects are compared: their own idea of what is equal may be anything.
_PLAIN = (str, bytes, int, float, CodeType)


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


class _Names:
    """Which function each name was given to, in this process."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[object, list[list[object]]]] = {}

    def give(self, name: str, function: Any) -> None:
        """Refuse a name that another function has; a module that is loaded again defines its functions again."""
        loaded = getattr(sys.modules.get(function.__module__), "__spec__", None)
        made_of = _layers(function)
        known = self._given.get(name)
        if known is not None and known[0] is loaded and not _are_one(known[1], made_of):
            raise ValueError(f"{name} is the name of two functions, and their results would be mixed up: {_SAY}")
        self._given[name] = (loaded, made_of)


def _layers(function: Any) -> list[list[object]]:
    """What tells a function from another of its name: what it is made of, and what every decorator around it is."""
    layers: list[Any] = []

    def note(layer: Any) -> bool:
        layers.append(layer)
        return False

    layers.append(inspect.unwrap(function, stop=note))
    return [_parts(layer) for layer in layers]


def _parts(layer: Any) -> list[object]:
    """The code of a function, and the values that were put into it when it was made: a decorator makes another function
    of the same code each time."""
    if not isinstance(layer, FunctionType):
        return [layer]
    parts: list[object] = [layer.__code__, *(layer.__defaults__ or ()), *(layer.__kwdefaults__ or {}).values()]
    for cell in layer.__closure__ or ():
        # One that is not filled yet has no contents.
        with suppress(ValueError):
            parts.append(cell.cell_contents)
    return parts


def _are_one(known: list[list[object]], made_of: list[list[object]]) -> bool:
    """Whether two functions are made of the same: the same objects, or texts and numbers that are equal."""
    return len(known) == len(made_of) and all(
        len(theirs) == len(ours) and all(map(_is_same, theirs, ours))
        for theirs, ours in zip(known, made_of, strict=True)
    )


def _is_same(left: object, right: object) -> bool:
    return left is right or (type(left) is type(right) and isinstance(left, _PLAIN) and left == right)


_NAMES = _Names()


def scope_of(function: Callable[..., Any]) -> str:
    """The default scope of a function: where it is defined."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or not name or name.endswith("<lambda>"):
        raise ValueError(f"{function!r} has no name of its own: {_SAY}")
    scope = f"{module}.{name}"
    why = ""
    if module in ("__main__", "__mp_main__"):
        why = "every program has a __main__"
    elif "<locals>" in name:
        why = "it is made anew by each call of the function around it"
    elif inspect.ismethod(function):
        why = "it does not say which object the method belongs to"
    if why:
        raise ValueError(f"the name {scope} identifies nothing: {why}; {_SAY} ({scope!r} finds the records it has)")
    _NAMES.give(scope, function)
    return scope
