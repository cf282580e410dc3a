"""`--workers celery`: documents are read by the workers of a cluster, and this command waits for them.

Rule: the command is one more node of the cluster. It writes each document down, sends a message for it and collects the
result. Ended in the middle, it goes on with what is missing when it is run again; workers finish what they have begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.runs.service import Extraction
from sameas.identity.ids import uuid7
from sameas.ontology.model import Ontology
from sameas.settings import Settings

if TYPE_CHECKING:
    from sameas.server.schemas import ExtractionParams
    from sameas.server.service import Service

CELERY = "celery"
# Documents that are written down and waited for at a time: workers have something to do, memory has an end.
AT_ONCE = 200


class ClusterExtraction:
    """What commands need of an `ExtractionService`, done by workers elsewhere."""

    def __init__(self, service: Service, *, space: str, ontology_id: str, params: ExtractionParams) -> None:
        self._service = service
        self._space = space
        self._ontology_id = ontology_id
        self._params = params

    async def extract(self, text: str | Iterable[str], *, document: str = "", **_: Any) -> Extraction:
        """The graph of a text; whatever else a caller says about how to read it, the workers' settings decide."""
        from sameas.server.schemas import ExtractRequest

        service = self._service
        whole = text if isinstance(text, str) else "".join(text)
        request = ExtractRequest(
            text=whole, ontology_id=self._ontology_id, extraction_params=self._params, document=document
        )
        prepared = await service.do(service.runner.prepare(self._space, request))
        done = await service.do(service.runner.extract(prepared, {}, priority="batch"))
        run = await asyncio.to_thread(service.runs(self._space).find, done.key)
        graph = await asyncio.to_thread(run.graph)
        return Extraction(prepared.key, done.cache_hit, done.shared, run.metadata, graph, run.folder)

    def render(self, *arguments: Any, **options: Any) -> bytes:
        """As `ExtractionService.render`."""
        return self._service.workspaces.get(self._space).render(*arguments, **options)


@asynccontextmanager
async def open_cluster(
    settings: Settings, *, ontology: Ontology, file: Path, extractor: str | None, model: str | None, base: str
) -> AsyncIterator[ClusterExtraction]:
    """The cluster of the settings, with the ontology known to every node."""
    import msgspec

    from sameas.server.app import App, open_entry
    from sameas.server.logs import RequestLog
    from sameas.server.schemas import ExtractionParams

    if not settings.broker:
        raise CliError("--workers celery needs a cluster", todo="Set SAMEAS_BROKER (docs/cluster.md)")
    if base != settings.base:
        raise CliError(
            f"the workers name things with {settings.base}, not with {base}",
            todo="Leave --base out, or set SAMEAS_BASE on every node",
            code=ExitCode.USAGE,
        )
    given = {"extractor": "model" if model else extractor, "model": model}
    params = msgspec.convert({name: value for name, value in given.items() if value}, ExtractionParams)
    entry = open_entry(settings)
    service = App(settings, entry, log=RequestLog(enabled=False)).service
    await service.start()
    try:
        ontology_id = await _know(service, settings.tenant, ontology, file)
        yield ClusterExtraction(service, space=settings.tenant, ontology_id=ontology_id, params=params)
    finally:
        await service.close()
        entry.close()


async def _know(service: Service, tenant: str, ontology: Ontology, file: Path) -> str:
    """The id of the ontology at every node; it is put there unless this version is known."""
    from sameas.extraction.runs.service import results_id

    ontology_id = results_id(ontology.iri, ontology.version)
    found = await service.do(service.ontologies.find(tenant, ontology_id))
    if found is not None and found.entry.version == ontology.version:
        return ontology_id
    if found is not None:
        raise CliError(
            f"the cluster knows another version of {ontology_id}",
            todo="Put yours with PUT /api/v1/ontologies/ID first: that invalidates the results of the other",
        )
    data = await asyncio.to_thread(file.read_bytes)
    put = await service.do(service.ontologies.put(tenant, file.stem, data, media_type="", audit={}, nonce=str(uuid7())))
    if put.entry.version != ontology.version:
        raise CliError(
            f"{file} alone is another ontology than with what it imports",
            todo="Give one file that holds all of it, such as `sameas ontology show` reads",
        )
    return put.entry.id
