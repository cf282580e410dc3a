"""`./run demo`."""

from __future__ import annotations

from sameas.cli import engine_demo

if __name__ == "__main__":
    engine_demo.main()
