"""The live board from both sides: results written and seen (bench.writing), boards read and made anew (bench.reading).

    python -m bench.live

Both with their defaults; either alone has the switches.
"""

from __future__ import annotations

import sys

from bench import reading, writing


def main() -> None:
    """Run both, one after the other, with the switches that both have."""
    print("writing:", flush=True)
    writing.main()
    print("reading:", flush=True)
    reading.main()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1:] != ["--json"]:
        sys.exit("bench.live has no switches but --json; see python -m bench.writing --help and bench.reading --help")
    main()
