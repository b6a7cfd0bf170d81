"""Property-based testing of stimulus calibration, for psyprobe's stimuli and anyone's.

Assertions take a `Stimulus`, or any numpy array or torch tensor together with what was requested (a
specification) and what its numbers are; a failure says what was requested, what is delivered, and
the likely cause. Strategies for hypothesis (`psyprobe.testing.strategies`) make displays and
stimuli that are valid by construction. A pytest plugin adds the fixture `calibration_report`.

Names load when they are first used: the plugin is part of every pytest run where psyprobe is
installed.
"""

from psyprobe.files.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
