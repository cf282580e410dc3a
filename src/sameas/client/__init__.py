"""The typed client of the service: `Client` for threads, `AsyncClient` for tasks."""

from sameas.client.calls import ServiceError, ServiceUnreachable
from sameas.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "ServiceError", "ServiceUnreachable"]
