import pytest

from tests.unit.once.observers.drives import DRIVES, AsyncDrive, SyncDrive


@pytest.fixture(params=DRIVES, ids=lambda drive: drive.name)
def drive_type(request: pytest.FixtureRequest) -> type[SyncDrive] | type[AsyncDrive]:
    """Makes an engine around a memory store: for threads, then for tasks."""
    return request.param
