"""Words of ReturnHorizon."""

WORDS = {
    "en": {
        "title": "Return and horizon",
        "question": "How far does the discount let you see?",
        "gamma": "gamma γ",
        "step": "seen from step",
        "list": "Rewards r_0 … r_11: {rewards}",
        "guess": "What is G_0, the reward-to-go of step 0, at γ = {gamma}?",
        "guessed": "You said {guess}; G_0 is {first}.",
        "guessed_nothing": "G_0 is {first}.",
        "rewards_title": "rewards, and what counts of them",
        "returns_title": "reward-to-go G_t of each step",
        "step_axis": "step t",
        "reward_axis": "reward, weight",
        "return_axis": "discounted reward",
        "legend_reward": "reward",
        "legend_counted": "counts γᵏ·reward",
        "legend_weight": "weight γᵏ, k steps after step t",
        "legend_horizon": "horizon 1/(1 − γ)",
        "horizon": "horizon",
        "group": "Rewards",
        "reward": "Reward of step {step}",
        "reward_value": "{reward}",
        "steps": "{horizon} steps",
        "endless": "∞ steps",
        "help": "Drag a reward up or down. Keys: up and down move it (with shift, faster), left "
        "and right choose another, Esc leaves.",
        "formula": "G_t = r_t + γ·r_{t+1} + γ²·r_{t+2} + … up to the end of the episode",
        "sentence_first": "γ = {gamma}, horizon {horizon}. Seen from step 0 the last reward counts "
        "{weight}. G_0 = {first}; without discount it would be {total}.",
        "sentence": "γ = {gamma}, horizon {horizon}. Seen from step {step} the last reward counts "
        "{weight}: G_{step} = {value}. Seen from step 0: G_0 = {first}; without discount {total}.",
        "sentence_hidden": "γ = {gamma}, horizon {horizon}: a reward k steps later counts γᵏ. "
        "Without discount the sum is {total}. Say what G_0 is, then reveal.",
        "picture_title": "What step {step} sees of twelve rewards",
        "state_guess": "guess first",
        "state_late_reward": "a late reward, seen from the start",
        "state_nearer": "the same reward, seen from step 6",
        "state_patient": "γ = 0.99: worth the way",
        "state_short_sighted": "γ = 0.5: two steps far",
        "state_undiscounted": "γ = 1: all counts alike",
        "state_constant": "the same reward at each step",
    }
}
