"""HTTP: the Idempotency-Key header for ASGI applications."""

from sameas.web.asgi import IdempotencyMiddleware
from sameas.web.openapi import publish_once
from sameas.web.problem import Problem
from sameas.web.route import RoutePolicy, every_status, idempotent, settled_statuses
from sameas.web.shadow import Shadowed, ShadowLedger
from sameas.web.table import RouteTable

__all__ = [
    "IdempotencyMiddleware",
    "Problem",
    "RoutePolicy",
    "RouteTable",
    "ShadowLedger",
    "Shadowed",
    "every_status",
    "idempotent",
    "publish_once",
    "settled_statuses",
]
