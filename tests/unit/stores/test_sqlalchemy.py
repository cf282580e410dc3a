"""Statements of tasks that go to a MySQL or SQL Server in one go, whatever order their answers come in."""

import asyncio

from sameas.once.errors import StoreUnavailable
from sameas.stores.sql import Statement
from sameas.stores.sqlalchemy import SqlAlchemyPerformer


class Reversed(SqlAlchemyPerformer):
    """A server that answers the latest first, and some not at all."""

    def __init__(self, fails=()):
        super().__init__("mysql+pymysql://nobody@127.0.0.1/nothing")
        self.fails = fails
        self.left = 20
        self.begun, self.done = [], []

    async def aperform(self, statement):
        self.begun.append(statement.sql)
        self.left -= 2
        for _ in range(self.left):
            await asyncio.sleep(0)
        self.done.append(statement.sql)
        if statement.sql in self.fails:
            raise StoreUnavailable
        return [(statement.sql,)]


def ask(performer, *statements):
    asked = [Statement(sql, {"digest": digest} if digest else {}) for sql, digest in statements]
    replies = asyncio.run(performer.aperform_many(asked))
    performer.close()
    return replies


def test_who_asks_first_for_a_record_is_answered_first():
    performer = Reversed()
    replies = ask(performer, ("1", b"a"), ("2", b"b"), ("3", b"a"), ("4", b""), ("5", b"a"), ("6", b""))
    assert replies == [[(sql,)] for sql in "123456"]
    assert [sql for sql in performer.done if sql in "135"] == ["1", "3", "5"]


def test_different_records_do_not_wait_for_each_other():
    performer = Reversed()
    ask(performer, ("1", b"a"), ("2", b"b"), ("3", b""), ("4", b""))
    assert (performer.begun, performer.done) == (list("1234"), list("4321"))


def test_a_failure_is_the_answer_of_one_statement():
    replies = ask(Reversed(fails="1"), ("1", b"a"), ("2", b"a"), ("3", b"b"))
    assert isinstance(replies[0], StoreUnavailable)
    assert replies[1:] == [[("2",)], [("3",)]]
