"""Words of RunScrubber."""

WORDS = {
    "en": {
        "title": "Run scrubber",
        "question": "Which sign comes first when a run goes wrong?",
        "other": "beside seed 1",
        "run_seed_1": "seed 1",
        "run_seed_2": "seed 2",
        "run_no_clip": "no clip",
        "run_large_rate": "learning rate 0.05",
        "iteration": "iteration",
        "guess": "{other}: in which iteration is kl_k3 above 0.05 for the first time? (0: never)",
        "guessed": "You said {guess}; it is iteration {first_jump}.",
        "guessed_nothing": "It is iteration {first_jump}.",
        "guessed_never": "You said {guess}; it never is, so the answer is 0.",
        "guessed_nothing_never": "It never is, so the answer is 0.",
        "strip_episode_return": "return",
        "strip_kl_k3": "KL, kl_k3 (nats)",
        "strip_fraction_outside": "outside 1 ± ε",
        "strip_entropy": "entropy (nats)",
        "kl_hidden": "hidden until you have guessed",
        "marks": "○ {one} ● {two}",
        "policy_title": "chance to push right (%)",
        "values_title": "value V (reward)",
        "angle_axis": "angle of the pole (rad)",
        "velocity_axis": "its velocity (rad/s)",
        "legend_one": "○ seed 1, learning rate 0.002",
        "legend_two": "● {other}",
        "legend_half": "right = left",
        "legend_jump": "first above 0.05",
        "legend_guess": "your guess",
        "silent": "Share of samples that the clip at ε = 0.2 makes silent, or would: ○ {one} "
        "● {two}.",
        "help": "Move the slider, drag in the curves, or use the arrow keys. The maps ask policy "
        "and critic about a cart that stands in the middle: the fuller the blue, the larger the "
        "number. Return: reward per episode, mean of the last 100. KL: how far this iteration "
        "moved the policy. Outside: share of ratios outside 1 ± ε.",
        "sentence": "After iteration {iteration}: return {return_one} with seed 1, {return_two} "
        "with {other}; kl_k3 {kl_one} and {kl_two}, entropy {entropy_one} and {entropy_two} nats. "
        "With {other}, kl_k3 first exceeds 0.05 in iteration {jump}.",
        "sentence_never": "After iteration {iteration}: return {return_one} with seed 1, "
        "{return_two} with {other}; kl_k3 {kl_one} and {kl_two}, entropy {entropy_one} and "
        "{entropy_two} nats. With {other}, kl_k3 never exceeds 0.05.",
        "sentence_hidden": "After iteration {iteration}: return {return_one} with seed 1, "
        "{return_two} with {other}; entropy {entropy_one} and {entropy_two} nats. Look along the "
        "runs, then state your guess.",
        "state_guess": "guess first",
        "state_ahead": "ahead, and already lost",
        "state_jump": "the jump",
        "state_fallen": "ten iterations later",
        "state_no_clip": "no clip: a jump at once",
        "state_no_clip_end": "no clip: the end",
        "state_seed_2": "another seed",
    }
}
