"""`python -m sameas.cli`."""

from sameas.cli.entry import main

main()
