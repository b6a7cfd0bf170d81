"""From responses to numbers: alignment with human sensitivity, its parts, and tables of them.

Names load when they are first used.
"""

from psyprobe.files.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
