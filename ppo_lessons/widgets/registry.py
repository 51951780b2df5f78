"""Which widgets are there? The class by its name, and the module that holds it.

One line for each. A notebook that imports one widget does not depend on the list.
"""

HOME = {
    "BaselineVariance": "baseline_variance",
    "BatchLedger": "batch_ledger",
    "BetaSlider": "beta_slider",
    "ClipRegion": "clip_region",
    "EndKinds": "end_kinds",
    "GaeScan": "gae_scan",
    "GaussianPolicy": "gaussian_policy",
    "GradientAgreement": "gradient_agreement",
    "LambdaTradeoff": "lambda_tradeoff",
    "LifeOfATransition": "life_of_a_transition",
    "LiveDashboard": "live_dashboard",
    "PartSwap": "part_swap",
    "Predict": "predict",
    "Quiz": "quiz",
    "RatioFromLogits": "ratio_from_logits",
    "ReturnHorizon": "return_horizon",
    "RunScrubber": "run_scrubber",
    "SeedCount": "seed_count",
    "StalenessTimeline": "staleness_timeline",
    "ThroughputLedger": "throughput_ledger",
    "TokenStrip": "token_strip",
    "TrustRegion": "trust_region_map",
    "ValueFit": "value_fit",
    "WhichBug": "which_bug",
    "WhichRun": "which_run",
}
# They ask a question and have no picture, no named states and no claims of their own to compute.
QUESTIONS = ("predict", "quiz")
# It shows what runs elsewhere: nothing to guess, no named states, no page of its own.
VIEWS = ("live_dashboard",)
