from __future__ import annotations

from tests.support.ssh_places import folder, place, servers, shelf

__all__ = ["folder", "place", "servers", "shelf"]
