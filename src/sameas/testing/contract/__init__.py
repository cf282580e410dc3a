"""What a store must do, one file per thing that is asked of it."""

from sameas.testing.contract.claims import ClaimContract
from sameas.testing.contract.outcomes import CompleteContract, FailContract, ReleaseContract, RenewContract
from sameas.testing.contract.records import FindContract, ForgetContract, PruneContract, ReadContract

__all__ = [
    "ClaimContract",
    "CompleteContract",
    "FailContract",
    "FindContract",
    "ForgetContract",
    "PruneContract",
    "ReadContract",
    "ReleaseContract",
    "RenewContract",
]
