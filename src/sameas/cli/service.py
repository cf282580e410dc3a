"""The extraction service of the settings in force, opened for one command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sameas.cli.errors import CliError, ExitCode
from sameas.connections import open_async_store
from sameas.extraction.runs.service import ExtractionService, ServiceSettings
from sameas.objects import open_objects
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
