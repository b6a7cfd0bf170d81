"""psyprobe asks machines the questions that psychophysics asks people.

>>> import psyprobe as pp
>>> display = pp.Display(peak=400.0)
>>> stimulus = pp.gabor(frequency=4, contrast=0.1, luminance=100, radius=1.0, ppd=60, size=224)
>>> display.encode(stimulus).shape
(224, 224, 3)

Names load when they are first used: importing psyprobe imports nothing else.
"""

from psyprobe.files.lazy import lazy_names

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
