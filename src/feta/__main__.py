"""`python -m feta` is `feta`."""

from feta.cli.app import main

main()
