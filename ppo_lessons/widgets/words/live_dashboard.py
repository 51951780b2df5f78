"""Words of LiveDashboard."""

WORDS = {
    "en": {
        "title": "Live dashboard",
        "question": "How is my run doing?",
        "pause": "Pause the view",
        "pin": "Pin this run",
        "unpin": "Unpin",
        "panel_episode_return": "return",
        "panel_kl_k3": "KL, kl_k3 (nats)",
        "panel_fractions": "outside, silent",
        "panel_entropy": "entropy (nats)",
        "panel_value_loss": "value loss",
        "panel_ev": "explained variance",
        "steps_axis": "environment steps",
        "legend_run": "this run",
        "legend_second": "silent; variance against what came",
        "legend_pinned": "pinned run",
        "progress": "iteration {iteration} of {num_iterations}, {speed} steps per second, {left} s "
        "left",
        "ended": "iteration {iteration} of {num_iterations}",
        "waiting": "No iteration yet. Give the board to train: on_iteration=board.",
        "training": "The run is training.",
        "sentence": "LiveDashboard of {number} iterations",
    }
}
