"""Tables that are not records: results, ontologies, tenants, in SQLite or PostgreSQL."""

from sameas.databases.database import Database, Row, RowRefused, Session, Statements

__all__ = ["Database", "Row", "RowRefused", "Session", "Statements"]
