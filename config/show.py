"""The settings as text for a person, secrets masked, and the schema of ``finale.toml`` for editors."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from pydantic import SecretStr
from pydantic.json_schema import GenerateJsonSchema

from config import segments
from config.settings import File, Settings
from config.urls import masked as mask
from leaderboard.durations import format_duration


class _Schema(GenerateJsonSchema):
    """Writes default durations as a person does."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``finale.toml``; a board's name is the header of its table, so it is no key there."""
    schema = File.model_json_schema(schema_generator=_Schema)
    board = schema["$defs"]["Board"]
    del board["properties"]["name"]
    board["required"].remove("name")
    board["properties"] |= segments.schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "finale.toml"}


def show(settings: Settings, *, masked: bool = True) -> str:
    """Return every setting in force as JSON text. ``masked`` leaves of a URL what ``config.urls.masked`` does."""

    def server(url: SecretStr | None) -> str:
        if url is None:
            return "embedded"
        return mask(url.get_secret_value()) if masked else url.get_secret_value()

    shown = {
        "file": None if settings.path is None else str(settings.path),
        "home": str(settings.home),
        "servers": {
            "redis": server(settings.servers.redis),
            **({"replica": server(settings.servers.replica)} if settings.servers.replica else {}),
            "postgres": server(settings.servers.postgres),
            "store": settings.store,
        },
        "runner": settings.runner.model_dump(mode="json"),
        "board": {
            name: {key: value for key, value in board.definition().items() if key != "name"}
            for name, board in settings.boards.items()
        },
        "rewards": {name: table.definition() for name, table in settings.tables.items()},
    }
    return json.dumps(shown, indent=2, ensure_ascii=False)
