"""Samples of the manual are written out so that a type checker sees what a reader sees."""

from tests.types.samples import awaits, blocks, written_out


def test_every_page_with_python_is_found():
    assert {"readme", "http", "celery", "tenancy"} <= set(blocks())


def test_a_name_comes_from_the_sample_above_or_else_from_the_list():
    written = written_out(
        "def charge(order):\n    return pay(order)\n\n\ncharge(order)\n", known={"pay": "samples.a_1"}
    )
    assert written.startswith("from tests.types.names import order\nfrom samples.a_1 import pay\n\ndef charge")


def test_what_is_awaited_outside_of_a_function_is_put_into_one():
    assert awaits("await engine.close()")
    assert not awaits("async def go():\n    await engine.close()\n")
    assert written_out("reply = await ask()\n", known={}).endswith(
        "async def main() -> None:\n    reply = await ask()\n"
    )
