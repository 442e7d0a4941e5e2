"""Writes the commented example that ``finale init`` starts a person with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from leaderboard.errors import InputError

NAMES = ("finale.toml", "rewards/goals.toml", "rewards/arena.toml")


def write_example(folder: Path) -> list[Path]:
    """Write the example configuration and its reward tables into ``folder`` and return their paths.

    Raises InputError, and leaves nothing written, if one of the files is there already or cannot be written.
    """
    contents = {folder / name: files("config").joinpath("examples", *name.split("/")).read_bytes() for name in NAMES}
    for path in contents:
        if path.exists() or path.is_symlink():
            raise InputError(
                f"{path} is there already; nothing was written", hint="choose an empty folder, or move the file away"
            )
    written: list[Path] = []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"the example cannot be written to {folder}", detail=f"{error.filename or folder}: {reason}"
        ) from None
    return written
