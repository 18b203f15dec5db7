"""The command `python -m feta`, the same as `feta`."""

from feta.cli.entry import main

main()
