"""`python -m feta_check FOLDER`."""

import sys

from feta_check.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
