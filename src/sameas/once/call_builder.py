"""From what a caller passes to a call: identity, fingerprint, policy, codec. The same for threads and tasks."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, Required, TypedDict

from sameas.identity.canonical import Exclusions, compile_exclusions, told_apart
from sameas.identity.errors import NotCanonical
from sameas.identity.ids import Attempts
from sameas.identity.key import (
    Former,
    Namespace,
    content_keys,
    content_keys_of_plain,
    fingerprint,
    former_fingerprint,
    record_digest,
)
from sameas.once.call import Call
from sameas.once.codec import PLAIN, Codec, OutcomeCodec, codec_for
from sameas.once.context import Context
from sameas.once.in_flight import InFlightCalls
from sameas.once.observe import Emit, KeyFailed
from sameas.once.policy import OnBusy, Policy
from sameas.once.record import About, ClaimRequest, Identity, check_audit, check_fingerprint, check_route, check_tags
from sameas.once.steps import Listener
from sameas.once.store import Backend


class Options(TypedDict, total=False):
    """What a caller may say about a call. Without `key`, the content of `payload` is the key."""

    scope: Required[str]
    key: str | None
    payload: Any
    tenant: str
    exclude_fields: Iterable[str] | Exclusions
    namespace: Namespace
    lease: float | None
    retention: float | None
    on_busy: OnBusy | None
    wait_for: float | None
    result_type: Any
    # Instead of a result type: a codec of the caller's own.
    codec: Codec | OutcomeCodec | None
    # Instead of a payload: its fingerprint, if the caller has computed it.
    request_fingerprint: str
    # With a key that was computed from content: a function of the one that it had before types had tags.
    former_key: Former | None
    tags: Iterable[str]
    route: str
    method: str
    audit: Mapping[str, Any]


class _Nothing:
    """Where None would mean something."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Any = _Nothing()
# Payloads that came before, so that an equal one is not written out and digested again; short ones only.
REMEMBERED: Final = 1_024
SHORT: Final = 1_024

_NO_PAYLOAD = "a call needs a key or a payload: something must say what 'the same' means"
_NO_SCOPE = "a call needs a scope: a stable name for this kind of work, such as 'charge'"


class CallBuilder:
    """Makes the calls of one engine."""

    def __init__(
        self,
        backend: Backend,
        *,
        policy: Policy,
        policies: Mapping[str, Policy],
        secret: bytes,
        new_listener: Callable[[], Listener],
        emit: Emit | None,
    ) -> None:
        self.backend = backend
        self.in_flight_calls = InFlightCalls()
        self.emit = emit
        self._policy = policy
        self._policies = dict(policies)
        self._secret = secret
        self._new_listener = new_listener
        self._seen: dict[tuple[str, str, bytes], Identity] = {}
        self._adjusted = lru_cache(maxsize=512)(self._adjust)
        self.after_fork()

    def after_fork(self) -> None:
        self._new_attempt = Attempts()
        self._nobody = About(owner=f"{socket.gethostname()}:{os.getpid()}")
        self.in_flight_calls = InFlightCalls()

    def call(
        self,
        work: Callable[[Context], Any],
        *,
        scope: str,
        key: str | None = None,
        payload: Any = NOTHING,
        tenant: str = "",
        exclude_fields: Iterable[str] | Exclusions = (),
        namespace: Namespace = "client",
        lease: float | None = None,
        retention: float | None = NOTHING,
        on_busy: OnBusy | None = None,
        wait_for: float | None = None,
        result_type: Any = None,
        codec: Codec | OutcomeCodec | None = None,
        request_fingerprint: str = "",
        former_key: Former | None = None,
        tags: Iterable[str] = (),
        route: str = "",
        method: str = "",
        audit: Mapping[str, Any] | None = None,
        backend: Backend | None = None,
    ) -> Call:
        """One caller's wish."""
        if lease is None and retention is NOTHING and on_busy is None and wait_for is None:
            policy = self._policies.get(scope, self._policy)
        else:
            policy = self._adjusted(scope, lease, retention, on_busy, wait_for)
        try:
            if request_fingerprint:
                check_fingerprint(request_fingerprint)
            if key and scope and payload is NOTHING:
                identity = Identity(record_digest(tenant, scope, key, namespace), tenant, scope, key)
                print_ = request_fingerprint
            elif key is None:
                if not scope or payload is NOTHING:
                    raise ValueError(_NO_PAYLOAD if scope else _NO_SCOPE)
                identity, former_key = self._of_content(tenant, scope, payload, exclude_fields)
                print_ = request_fingerprint
            else:
                exclude_fields = compile_exclusions(exclude_fields)
                identity = self._of_key(scope, key, tenant, namespace)
                print_ = request_fingerprint or fingerprint(payload, secret=self._secret, exclude_fields=exclude_fields)
        except NotCanonical as error:
            if self.emit is not None:
                self.emit(KeyFailed(scope, error))
            raise
        about = self._nobody
        if tags or route or method or audit:
            about = self._about(tags, route, method, audit or {})
        request = ClaimRequest(
            identity,
            print_,
            self._new_attempt(),
            policy.lease_micros,
            policy.retention_micros,
            about,
            policy.wait_micros,
        )
        call = Call(
            request,
            work,
            policy,
            codec or (PLAIN if result_type is None else codec_for(result_type)),
            backend or self.backend,
            self.in_flight_calls,
            self._new_listener,
        )
        if former_key is not None and policy.former_keys:
            call.former_key = former_key
        elif print_ and not request_fingerprint:
            call.former_print = partial(former_fingerprint, payload, secret=self._secret, exclude_fields=exclude_fields)
        return call

    def _about(self, tags: Iterable[str], route: str, method: str, audit: Mapping[str, Any]) -> About:
        if route or method:
            check_route(route, method)
        if audit:
            check_audit(audit)
        return About(self._nobody.owner, check_tags(tags), route, method, audit)

    def _of_content(
        self, tenant: str, scope: str, payload: Any, exclude_fields: Iterable[str] | Exclusions
    ) -> tuple[Identity, Former | None]:
        told = None if exclude_fields else told_apart(payload)
        if told is None or len(told) > SHORT:
            key, former = content_keys(payload, exclude_fields)
            return Identity(record_digest(tenant, scope, key, "content"), tenant, scope, key), former
        # For whose it is: nobody can tell by the time it takes what others sent.
        known = (tenant, scope, told)
        seen = self._seen.get(known)
        if seen is not None:
            return seen, None
        key, former, is_certain = content_keys_of_plain(payload, told)
        identity = Identity(record_digest(tenant, scope, key, "content"), tenant, scope, key)
        if is_certain:
            # All of it is dropped when it is full: that costs less than to keep it in order.
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen[known] = identity
        return identity, former

    def _of_key(self, scope: str, key: str, tenant: str, namespace: Namespace) -> Identity:
        if not scope:
            raise ValueError(_NO_SCOPE)
        if not key:
            raise ValueError("the key is empty")
        return Identity(record_digest(tenant, scope, key, namespace), tenant, scope, key)

    def _adjust(
        self,
        scope: str,
        lease: float | None,
        retention: float | None,
        on_busy: OnBusy | None,
        wait_for: float | None,
    ) -> Policy:
        changes: dict[str, Any] = {}
        if lease is not None:
            changes["lease"] = lease
        if retention is not NOTHING:
            changes["retention"] = retention
        if on_busy is not None:
            changes["on_busy"] = on_busy
        if wait_for is not None:
            changes["wait_for"] = wait_for
        policy = self._policies.get(scope, self._policy)
        return replace(policy, **changes) if changes else policy


def identity_of(scope: str, key: str, *, tenant: str = "", namespace: Namespace = "client") -> Identity:
    """The identity of a record whose key is known."""
    return Identity(record_digest(tenant, scope, key, namespace), tenant, scope, key)


def identities_of(scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None) -> list[Identity]:
    """What a key may stand for: one that a caller chose, one computed from content, or both if nobody says."""
    namespaces: list[Namespace] = ["client", "content"] if namespace is None else [namespace]
    return [identity_of(scope, key, tenant=tenant, namespace=each) for each in namespaces]
