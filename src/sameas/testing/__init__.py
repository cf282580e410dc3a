"""The conformance kit: what every store must do, for our stores and for yours."""

from sameas.testing.clock import MovableClock
from sameas.testing.conformance import StoreConformance, examine
from sameas.testing.examined import Capabilities
from sameas.testing.search import Counterexample, explore

__all__ = ["Capabilities", "Counterexample", "MovableClock", "StoreConformance", "examine", "explore"]
