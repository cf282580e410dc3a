"""`python -m sameas`."""

from sameas.cli.entry import main

main()
