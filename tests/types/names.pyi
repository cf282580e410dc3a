"""The names that samples of the manual use and do not define, as a reader would take them."""

import asyncio as asyncio
from decimal import Decimal as Decimal
from pathlib import Path
from typing import Any

from celery import Celery, Task
from fastapi import FastAPI
from prometheus_client import Counter
from sqlalchemy import Engine as Database
from sqlalchemy.orm import Session as Session
from starlette.authentication import AuthenticationBackend
from starlette.middleware.authentication import AuthenticationMiddleware as AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware as CORSMiddleware
from starlette.middleware.sessions import SessionMiddleware as SessionMiddleware

from sameas import Context
from sameas import IdempotentProcessor as IdempotentProcessor
from sameas import Policy as Policy
from sameas.identity.normalize import normalize_context as normalize_context
from sameas.identity.normalize import normalize_request as normalize_request
from sameas.identity.normalize import normalize_task as normalize_task
from sameas.identity.normalize import requested_case_id as requested_case_id
from sameas.identity.scope import AuditMeta, Principal
from sameas.llm import *
from sameas.llm.redis_account import RedisAccount as RedisAccount
from sameas.ontology import Ontology
from sameas.stores.memory import MemoryBackend
from sameas.stores.redis import open_backend as open_backend
from sameas.tenancy import Authenticator, TenantDirectory
from sameas.web import *

class Provider:
    def charge(self, card: str, total: int) -> dict[str, Any]: ...

class Order: ...
class Placed: ...
class CardDeclined(Exception): ...
class LoginBackend(AuthenticationBackend): ...

def handle(message: dict[str, Any]) -> dict[str, Any]: ...
def fits(reply: Reply) -> bool: ...
def keep(document: dict[str, Any], *, audit_meta: AuditMeta) -> None: ...
def work(ctx: Context) -> dict[str, Any]: ...
def charge_order(ctx: Context, order: dict[str, Any]) -> dict[str, Any]: ...

MyBackend = MemoryBackend

SESSION_SECRET: str
VERDICTS: Counter
application: FastAPI
app: FastAPI
ask: Ask
asgi_scope: dict[str, Any]
budget: TokenBudgetService
celery: Celery
database: Database
desk: Authenticator
directory: TenantDirectory
home: Path
key: str
limiter: CentralRateLimiterService
longer: str
memo: CallMemo
message: dict[str, Any]
model: Model
ontology: Ontology
order: dict[str, Any]
orders: list[dict[str, Any]]
principal: Principal
provider: Provider
question: Ask
store: Any  # for threads or for tasks, as the page says
task: Task
tenant: str
text: str
