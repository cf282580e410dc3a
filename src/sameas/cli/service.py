"""The extraction service of the settings in force, opened for one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sameas.cli.errors import CliError, ExitCode
from sameas.connections import open_async_store
from sameas.extraction.runs.service import ExtractionService, ServiceSettings
from sameas.objects import open_objects
from sameas.once.async_engine import AsyncEngine
from sameas.once.store import AsyncStore
from sameas.settings import Settings, hide_password, make_home


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[ExtractionService]:
    """The service, with the store open until the block ends."""
    make_home(settings)
    async with open_configured(settings) as store:
        try:
            service = make_service(settings, store)
        except ValueError as error:
            raise CliError(str(error), todo="Correct SAMEAS_DATABASE or SAMEAS_TENANT", code=ExitCode.USAGE) from error
        yield service


def make_service(settings: Settings, store: AsyncStore) -> ExtractionService:
    """The service over an open store."""
    shared = bool(settings.objects and settings.database)
    return ExtractionService(
        home=settings.home,
        store=store,
        tenant=settings.tenant,
        database=settings.database or None,
        objects=open_objects(settings.objects) if settings.objects else None,
        # As the servers and workers of the same settings have it.
        settings=ServiceSettings(shared_checkpoints=shared),
    )


async def delete_run(service: ExtractionService, store: AsyncStore, key: str, *, settings: Settings) -> None:
    """Delete a run, and first the answers that clients of a service in the same home have of it under their own keys.
    Raises RunNotFoundError if there is no run.
    """
    from sameas.server.runs.answers import ClientKeys

    client_keys = ClientKeys(AsyncEngine(store), lease=settings.lease, retention=settings.key_ttl)
    await client_keys.delete(settings.tenant, key)
    await asyncio.to_thread(service.remove, key)


def open_configured(settings: Settings) -> AsyncStore:
    """The configured store."""
    try:
        return open_async_store(settings.store_url)
    except ValueError as error:
        raise CliError(
            f"SAMEAS_STORE: {hide_password(settings.store_url)} cannot be opened",
            todo=str(error),
            code=ExitCode.USAGE,
        ) from error
