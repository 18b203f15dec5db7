"""Campaign of outside links: every address in the documents, checked where there is a network.

    python -m campaigns.links [--offline]

It prints each address with the documents that name it, and what the server answered. Links in the
site are checked by the tests. Without a network, addresses are only listed. An address that is gone
(404, 410) is wrong; servers that refuse programs are counted, not judged.
"""

import argparse
import re
import sys
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

from campaigns.result import finish

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"https?://[^\s)>`\"'\]]+")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
GONE = (404, 410)


def addresses() -> dict[str, list[str]]:
    """Return the documents by the outside address that they name; code is not searched."""
    found: dict[str, list[str]] = defaultdict(list)
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for document in sorted(path for path in documents if "generated" not in path.parts):
        text = CODE.sub("", document.read_text(encoding="utf-8"))
        for address in dict.fromkeys(ADDRESS.findall(text)):
            found[address.rstrip(".,;:")].append(document.relative_to(ROOT).as_posix())
    return found


def answer(address: str) -> int | str:
    """Return the status of an address, or why there is none."""
    request = urllib.request.Request(address, headers={"User-Agent": "feta-links"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return f"not reached: {error}"


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--offline", action="store_true", help="list addresses only")
    offline = parser.parse_args().offline
    started, counts = time.perf_counter(), Counter[str]()
    print(f"outside links on {datetime.now(UTC).date()}")
    for address, documents in addresses().items():
        status = "not checked" if offline else answer(address)
        print(f"{status}  {address}  ({', '.join(documents)})", flush=True)
        counts["addresses"] += 1
        counts["answered"] += isinstance(status, int) and status < 400
        counts["WRONG: gone"] += status in GONE
        counts["refused or not reached"] += not isinstance(status, int) or (
            status >= 400 and status not in GONE
        )
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
