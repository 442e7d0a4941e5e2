"""The version that seals and ``--version`` name."""

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("finale")
    except PackageNotFoundError:
        return "0"  # run from a folder that was never installed


VERSION = _version()
SOFTWARE = f"finale {VERSION}"
