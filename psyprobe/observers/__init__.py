"""What looks at a stimulus: encoders by name, functions of the user's own, and the image itself.

Names load when they are first used: a room of observers that is looked into imports none.
"""

from psyprobe.files.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
