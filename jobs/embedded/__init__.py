"""Finale's own Redis-compatible server and PostgreSQL, for when no [servers] are configured."""

from jobs.embedded.home import EmbeddedHome
from jobs.embedded.servers import Endpoints, ServerStatus, Status, down, session, status, up

__all__ = ["EmbeddedHome", "Endpoints", "ServerStatus", "Status", "down", "session", "status", "up"]
