"""The typed client of the service: `Client` for threads, `AsyncClient` for tasks."""

from sameas.client.client import AsyncClient, Client
from sameas.client.errors import ServiceError, ServiceUnreachable

__all__ = ["AsyncClient", "Client", "ServiceError", "ServiceUnreachable"]
