from psyprobe.probes import ProbeKind
from psyprobe.tasks.mvp_bench.metrics import compare_models as compare_models
from psyprobe.tasks.mvp_bench.metrics import constant_replies as constant_replies
from psyprobe.tasks.mvp_bench.metrics import mvp_metrics as mvp_metrics
from psyprobe.tasks.mvp_bench.metrics import mvp_tables as mvp_tables
from psyprobe.tasks.mvp_bench.metrics import with_categories as with_categories
from psyprobe.tasks.mvp_bench.questions import check_questions as check_questions
from psyprobe.tasks.mvp_bench.questions import read_questions as read_questions
from psyprobe.tasks.mvp_bench.questions import rotated as rotated
from psyprobe.tasks.mvp_bench.questions import split_choices as split_choices
from psyprobe.tasks.mvp_bench.questions import with_rotations as with_rotations
from psyprobe.tasks.mvp_bench.replies import PARSERS as PARSERS
from psyprobe.tasks.mvp_bench.replies import parse_replies as parse_replies
from psyprobe.tasks.mvp_bench.replies import read_predictions as read_predictions

MVP_BENCH: ProbeKind
