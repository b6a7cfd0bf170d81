"""In which order contrasts are shown: constant stimuli, the P(yes) ladder, QUEST+ and qCSF."""

from psyprobe.files.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
