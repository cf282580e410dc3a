"""How good extraction is, on texts whose gold is complete: every fact that the text asserts, and nothing else."""

from sameas.extraction.evaluation.gold import (
    Domain,
    GoldDocument,
    Judged,
    is_domain,
    judge,
    judge_documents,
    read_domains,
)
from sameas.extraction.evaluation.report import Report, lines_of, report_of

__all__ = [
    "Domain",
    "GoldDocument",
    "Judged",
    "Report",
    "is_domain",
    "judge",
    "judge_documents",
    "lines_of",
    "read_domains",
    "report_of",
]
