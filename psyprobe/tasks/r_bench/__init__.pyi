from psyprobe.probes import ProbeKind
from psyprobe.tasks.r_bench.items import check_items as check_items
from psyprobe.tasks.r_bench.items import read_items as read_items
from psyprobe.tasks.r_bench.items import read_set as read_set
from psyprobe.tasks.r_bench.metrics import across as across
from psyprobe.tasks.r_bench.metrics import paired_difference as paired_difference
from psyprobe.tasks.r_bench.metrics import rbench_metrics as rbench_metrics
from psyprobe.tasks.r_bench.metrics import rbench_table as rbench_table
from psyprobe.tasks.r_bench.scores import MCQ_RULES as MCQ_RULES
from psyprobe.tasks.r_bench.scores import read_answers as read_answers
from psyprobe.tasks.r_bench.scores import read_judgements as read_judgements
from psyprobe.tasks.r_bench.scores import score_items as score_items

R_BENCH: ProbeKind
CORRUPTION_PROFILE: ProbeKind
