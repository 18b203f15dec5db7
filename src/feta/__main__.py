"""`python -m feta` is `feta`."""

from feta.cli.entry import main

main()
