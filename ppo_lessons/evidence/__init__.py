"""May it ship? Counts with intervals, a judge who errs, a gate, a report that may be refused."""

from ppo_lessons.evidence.counting import (
    Comparison,
    Count,
    compare_on_same_prompts,
    count_right,
    mcnemar,
    mean_pass_at_k,
    pass_at_k,
    wilson,
)
from ppo_lessons.evidence.gate import (
    Decision,
    Evaluation,
    Gate,
    GateConfig,
    RecordedRun,
    replay,
)
from ppo_lessons.evidence.judge import (
    Calibration,
    Estimate,
    calibrate,
    draw_count,
    estimate_success,
    judge_labels,
)
from ppo_lessons.evidence.report import (
    Answered,
    Report,
    Slice,
    Versions,
    distinct_share,
    release_report,
    vocabulary_sha256,
)

__all__ = [
    "Answered",
    "Calibration",
    "Comparison",
    "Count",
    "Decision",
    "Estimate",
    "Evaluation",
    "Gate",
    "GateConfig",
    "RecordedRun",
    "Report",
    "Slice",
    "Versions",
    "calibrate",
    "compare_on_same_prompts",
    "count_right",
    "distinct_share",
    "draw_count",
    "estimate_success",
    "judge_labels",
    "mcnemar",
    "mean_pass_at_k",
    "pass_at_k",
    "release_report",
    "replay",
    "vocabulary_sha256",
    "wilson",
]
