"""Several `feta` commands in one process, because importing takes longer than the commands.

Standard input is a JSON list of argument lists. Standard output is a JSON list with the exit code
and the output of each command.
"""

import contextlib
import io
import json
import sys
from importlib.metadata import entry_points


def run_command(arguments: list[str]) -> dict[str, object]:
    """Run the console script `feta` with these arguments."""
    (script,) = entry_points(group="console_scripts", name="feta")
    main = script.load()
    sys.argv = ["feta", *arguments]
    output, errors = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code
    return {"code": code, "stdout": output.getvalue(), "stderr": errors.getvalue()}


if __name__ == "__main__":
    results = [run_command(arguments) for arguments in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(results))
