"""Pages for a browser, each one file that needs nothing else; whatever a template is given is
escaped.
"""

from __future__ import annotations
