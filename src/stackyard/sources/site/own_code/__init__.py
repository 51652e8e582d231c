"""The user's own OpenTofu code beside the envs of a site: `envs/NAME.tf/` for one env, `extra/` for all.

Each folder becomes a module of the configuration that is rendered for an env. `blocks` reads what its files
declare, `folder` what a folder is made of, and `find` which folders a site has and what is wrong with them.
Nothing here starts an engine: what the code means, only that can tell.
"""

from __future__ import annotations

from stackyard.sources.site.own_code.find import SiteCode, find_own_code
from stackyard.sources.site.own_code.folder import CodeFolder

__all__ = ["CodeFolder", "SiteCode", "find_own_code"]
