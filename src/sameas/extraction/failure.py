"""The code of what ended a run, for programs: it stays what it is when classes are renamed."""

from sameas.once.errors import StoreError

INTERNAL, INVALID, STORE = "internal_error", "validation_error", "store_error"


def failure_code(error: BaseException) -> str:
    """The error's own code where it has one, such as `auth`; else the kind of error that it is."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and code:
        return code
    if isinstance(error, StoreError):
        return STORE
    return INVALID if isinstance(error, ValueError) else INTERNAL
