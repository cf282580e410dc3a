"""The room for deleting on disks in memory that are nearly full."""

import pytest

from sameas.server.reserve import SIZE, DiskReserve
from tests.servers.full_disk import small_disk


@pytest.mark.parametrize("short_by", [1 << 12, 1 << 20, 5 << 20], ids=["a-page", "a-little", "more-than-half"])
def test_as_much_of_the_room_is_held_as_there_is(tmp_path, short_by):
    with small_disk(tmp_path, size=SIZE - short_by):
        held = DiskReserve(tmp_path).hold()
        assert SIZE - short_by - (1 << 14) < held <= SIZE - short_by
        assert (tmp_path / ".reserve").stat().st_size == held


def test_what_could_not_be_held_is_held_when_there_is_room(tmp_path):
    room = DiskReserve(tmp_path)
    with small_disk(tmp_path, size=SIZE + (1 << 20)) as disk:
        (tmp_path / "filling").write_bytes(b"x" * (3 << 20))
        assert room.hold() == SIZE - (2 << 20)
        disk.make_room()
        assert room.hold() == SIZE
        room.give_up()
        disk.fill()
        assert room.hold() == 0
