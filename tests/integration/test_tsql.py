"""Every statement for MS SQL Server is good T-SQL, by Microsoft's own parser and compiler."""

import re

import pytest

from sameas.once.call_builder import identity_of
from sameas.once.errors import StoreUnavailable
from sameas.once.record import Accepted, ClaimRequest, Lease, Lost, Renewal
from sameas.once.script import run
from sameas.stores.mssql import MsSqlBackend
from sameas.stores.sqlalchemy import SqlAlchemyPerformer
from sameas.stores.statements import bound, migrations, parameters, statements, styled
from tests.shared_data import missing
from tests.tsql.tools import ToolsMissingError, check

TYPES = {
    "digest": "VARBINARY(32)",
    "after_digest": "VARBINARY(32)",
    "outcome": "VARBINARY(MAX)",
    "fence": "BIGINT",
    "lease_for": "BIGINT",
    "retain_for": "BIGINT",
    "skew": "BIGINT",
    "created_from": "BIGINT",
    "created_before": "BIGINT",
    "after_time": "BIGINT",
    "limit": "BIGINT",
    "status_code": "INT",
    "key_length": "INT",
    "version": "INT",
}
# The compiler knows the server's functions, but not this procedure of it.
BUILT_IN = "[sys].[sp_getapplock]"
# What is checked as part of the schema, not as a batch.
SCHEMA = re.compile(r"schema_\d+|versions_table")


@pytest.fixture(scope="module")
def checked():
    try:
        return check(schema(), batches())
    except ToolsMissingError as error:
        missing(f"Microsoft's T-SQL compiler ({error})")


def schema():
    steps = [step for migration in migrations("mssql") for step in migration.split(";\n")]
    versions = statements("mssql")["versions_table"]
    return [*steps, versions[versions.index("CREATE TABLE") :]]


def batches():
    """Each statement with values as parameters, and with every condition that it can have."""
    sql = statements("mssql")
    conditions = {name: text for name, text in sql.items() if name.startswith("where_")}
    for_forget = {name: conditions[name] for name in ("where_tenant", "where_scope", "where_tag")}
    found = {}
    for name, text in sql.items():
        if SCHEMA.fullmatch(name) or name in conditions or name == "one_lease":
            continue
        fitting = for_forget if name == "forget_where" else conditions
        whole = text.replace("{conditions}", " AND ".join(fitting.values())).replace("{lock_wait}", "2000")
        found[name] = batch(whole)
    found["renew_many"] = batch(backend()._of_holders(renewals(3)).sql)
    return found


def renewals(count):
    return [
        Renewal(Lease(identity_of("s", str(number)), 1_000 + number, f"a{number}"), 3_000_000, 60_000_000)
        for number in range(count)
    ]


def batch(sql):
    """A batch whose values are parameters under other names: the batch declares variables of its own."""
    kinds = {f"p_{name}": TYPES.get(name.rstrip("0123456789"), "NVARCHAR(MAX)") for name in parameters(sql)}
    return {"sql": re.sub(r"(?<![\w:]):([a-z]\w*)", r"@p_\1", sql), "parameters": kinds}


class TestStatements:
    def test_every_statement_parses_and_every_column_is_there(self, checked):
        problems = [problem for found in checked.values() for problem in found]
        assert [problem for problem in problems if BUILT_IN not in problem] == []

    def test_statements_are_written_without_merge(self):
        assert not [name for name, sql in statements("mssql").items() if re.search(r"\bMERGE\b", sql)]

    def test_driver_reads_every_statement_as_it_is_meant(self):
        helper = pytest.importorskip("mssql_python.parameter_helper")
        for name, sql in statements("mssql").items():
            values = dict.fromkeys([*parameters(sql), "not", "used"], 1)
            text, bound_values = helper.convert_pyformat_to_qmark(*bound(sql, values, "pyformat"))
            assert text == styled(sql, "qmark")[0], name
            assert len(bound_values) == len(parameters(sql)), name

    def test_values_are_bound_only_where_the_script_gives_them(self):
        known = set(parameters(" ".join(statements("postgres").values()))) | {"skew"}
        ours = {name: sql for name, sql in statements("mssql").items() if name != "one_lease"}
        assert set(parameters(" ".join(ours.values()))) <= known


class TestPatience:
    """How long a claim waits for a row that another transaction holds."""

    @pytest.mark.parametrize(
        ("seconds", "milliseconds"),
        [
            (None, 2_000),
            (0, 100),
            (0.05, 100),
            (0.1, 100),
            (0.3, 200),
            (0.7, 400),
            (1.6, 1_600),
            (1.7, 1_600),
            (60, 2_000),
        ],
    )
    def test_a_claim_waits_no_longer_than_its_caller(self, seconds, milliseconds):
        lock_wait = None if seconds is None else round(seconds * 1e6)
        sql = claim_text(lock_wait)
        assert f"SET LOCK_TIMEOUT {milliseconds};" in sql
        assert "{" not in sql

    def test_texts_are_few_whatever_callers_wish(self):
        assert len({claim_text(lock_wait) for lock_wait in range(0, 5_000_000, 12_345)}) <= 6

    def test_other_writes_wait_as_long_as_the_store(self):
        assert "SET LOCK_TIMEOUT 2000;" in backend()._sql["settle"]


class TestManyLeases:
    """Their script, against replies as the statement gives them: no server is here to give them itself."""

    def test_few_texts_with_no_more_values_than_the_server_takes(self):
        made = [backend()._of_holders(renewals(count)) for count in range(1, 101)]
        assert len({statement.sql for statement in made}) == 8
        for statement in made:
            assert set(parameters(statement.sql)) - {"skew"} == set(statement.values)
            assert len(statement.values) < 2_000

    def test_each_is_told_its_own_and_only_what_was_passed_over_is_asked_again(self):
        store, asked = backend(), []
        wanted = renewals(130)

        def perform(statement):
            asked.append(statement)
            values = statement.values
            if "digest0" not in values:
                return [] if values["fence"] == 1_007 else [(5, 6)]
            # In an order of the server's, without two; the text is that of 100, then of 30.
            numbers = reversed(range(30 if values["fence0"] == 1_100 else 100))
            leases = [(values[f"digest{at}"], values[f"fence{at}"], values[f"attempt_id{at}"]) for at in numbers]
            return [(*lease, 1, lease[1]) for lease in leases if lease[1] not in (1_007, 1_011)]

        answers = [answer for script in store.renew_many(wanted) for answer in run(script, perform)]
        assert len(asked) == 2 + 2
        expected = [Accepted(1, renewal.lease.fence) for renewal in wanted]
        expected[7], expected[11] = Lost(), Accepted(5, 6)
        assert answers == expected

    def test_a_server_that_is_away_answers_none_of_them(self):
        def perform(statement):
            raise StoreUnavailable("away")

        (script,) = backend().renew_many(renewals(5))
        assert [type(answer) for answer in run(script, perform)] == [StoreUnavailable] * 5


def backend():
    performer = SqlAlchemyPerformer("mssql+mssqlpython://nobody@127.0.0.1/nothing")
    return MsSqlBackend(performer, dialect="mssql")


def claim_text(lock_wait):
    request = ClaimRequest(identity_of("s", "k"), "f", "attempt", 1, 1, lock_wait=lock_wait)
    return backend()._take(request).sql


class TestChecker:
    """The checker finds what it must find."""

    @pytest.mark.parametrize(
        ("sql", "problem"),
        [
            ("SELECT k.[Nope] FROM [dbo].[IdempotencyKeys] AS k", "Nope"),
            ("SELECT k.[Key] FROM [dbo].[Nowhere] AS k", "Nowhere"),
            ("SELECT k.[Key] FROM [dbo].[IdempotencyKeys] AS k LIMIT 1", "LIMIT"),
            ("INSERT INTO [dbo].[IdempotencyKeys] ([Key]) VALUES (N'a') ON CONFLICT DO NOTHING", "ON"),
            ("SELECT @undeclared", "undeclared"),
        ],
    )
    def test_wrong_statement_is_found(self, checked, sql, problem):
        found = check(schema(), {"wrong": {"sql": sql, "parameters": {}}})
        assert problem in str(found)


class TestSourceDocument:
    """The names of source document 003, each in the compiled schema."""

    def test_every_column_constraint_and_index_keeps_its_name(self):
        made = "\n".join(migrations("mssql"))
        for name in (
            *("Id", "Key", "Route", "HttpMethod", "StatusCode", "ResponseBody", "ContentType", "CreatedAt"),
            *("ExpiresAt", "IsProcessed", "ProcessingCompletedAt", "PK_IdempotencyKeys"),
            *("UX_IdempotencyKey_Composite", "CK_StatusCode_Valid", "CK_ExpiresAt_Greater_Than_CreatedAt"),
            *("IX_IdempotencyKeys_ExpiresAt", "IX_IdempotencyKeys_Route_CreatedAt"),
        ):
            assert f"[{name}]" in made
        for part in (
            "[Id] UNIQUEIDENTIFIER NOT NULL",
            "[ResponseBody] NVARCHAR(MAX) NULL",
            "[CreatedAt] DATETIME2(7) NOT NULL",
            "PRIMARY KEY CLUSTERED ([Id] ASC)",
            "CHECK ([StatusCode] BETWEEN 100 AND 599)",
            "CHECK ([ExpiresAt] > [CreatedAt])",
            "([ExpiresAt] ASC)\n  INCLUDE ([Key], [IsProcessed])",
            "([Route], [CreatedAt] DESC)\n  INCLUDE ([HttpMethod], [StatusCode], [IsProcessed])",
        ):
            assert part in made
