from psyprobe.stimulus.certificate import Certificate as Certificate
from psyprobe.stimulus.tolerances import PRECISIONS as PRECISIONS
from psyprobe.stimulus.tolerances import TOLERANCES as TOLERANCES
from psyprobe.stimulus.tolerances import Tolerance as Tolerance
from psyprobe.stimulus.tolerances import tolerance as tolerance
from psyprobe.testing import strategies as strategies
from psyprobe.testing.assertions import CalibrationError as CalibrationError
from psyprobe.testing.assertions import assert_band as assert_band
from psyprobe.testing.assertions import (
    assert_batch_equals_loop as assert_batch_equals_loop,
)
from psyprobe.testing.assertions import assert_calibrated as assert_calibrated
from psyprobe.testing.assertions import assert_cone_contrast as assert_cone_contrast
from psyprobe.testing.assertions import assert_contrast as assert_contrast
from psyprobe.testing.assertions import assert_frequency as assert_frequency
from psyprobe.testing.assertions import assert_in_gamut as assert_in_gamut
from psyprobe.testing.assertions import assert_isoluminant as assert_isoluminant
from psyprobe.testing.assertions import assert_mean_luminance as assert_mean_luminance
from psyprobe.testing.assertions import assert_orientation as assert_orientation
from psyprobe.testing.assertions import assert_reproducible as assert_reproducible
from psyprobe.testing.assertions import assert_round_trip as assert_round_trip
from psyprobe.testing.assertions import judge as judge
from psyprobe.testing.diagnosis import Cause as Cause
