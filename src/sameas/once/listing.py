"""Listing records that are at hand: which fit a query, which come first. For stores without SQL to say it in."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

from msgspec.structs import replace

from sameas.once.record import Record
from sameas.once.store import Page, Query, cursor


def fits(record: Record, query: Query) -> bool:
    """Whether a record is one that the query asks for."""
    status = record.outcome.meta.get("status") if record.outcome else None
    return (
        query.tenant in (None, record.identity.tenant)
        and query.scope in (None, record.identity.scope)
        and query.state in (None, record.state)
        and query.route in (None, record.about.route)
        and query.method in (None, record.about.method)
        and query.status in (None, status)
        and (query.key_prefix is None or record.identity.key.startswith(query.key_prefix))
        and (query.tag is None or query.tag in record.about.tags)
        and (query.created_from is None or record.created_at >= query.created_from)
        and (query.created_before is None or record.created_at < query.created_before)
        and (query.after is None or cursor(record) < query.after)
    )


def first_of(records: Iterable[Record], query: Query) -> list[Record]:
    """The newest that belong on the page, and one more if there is one."""
    return nlargest(query.limit + 1, records, key=lambda record: (record.created_at, record.identity.digest))


def page_of(found: list[Record], query: Query) -> Page:
    """The page of what `first_of` found, without the outcomes' bytes."""
    page = [
        replace(record, outcome=record.outcome and replace(record.outcome, data=b"")) for record in found[: query.limit]
    ]
    return Page(page, cursor(page[-1]) if len(found) > query.limit else None)
