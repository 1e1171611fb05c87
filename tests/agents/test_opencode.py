"""opencode: see cases.py."""
from cases import *  # noqa: F401, F403

AGENT = "opencode"
