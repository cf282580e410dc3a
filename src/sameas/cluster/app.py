"""`celery -A sameas.cluster.app ...` and `flower`: the app of the settings in force, for the usual tools of Celery."""

from __future__ import annotations

from sameas.cluster.broker import make_app
from sameas.settings import load_settings

app = make_app(load_settings().broker or "memory://")
