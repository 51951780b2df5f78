"""Static twin of the widget LambdaTradeoff: what λ weighs, what it costs, and the two biases."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, WORSE, figure, style


def lambda_tradeoff_figure(
    bias_squared: Sequence[float],
    variance: Sequence[float],
    advantage_bias_squared: Sequence[float],
    *,
    gae_lambda: float,
    return_weights: Sequence[float],
    later_weight: float,
    trace_weights: Sequence[float],
    title: str,
) -> Figure:
    """Draw weights, squared error and biases.

    Args:
        bias_squared: of the gradient, at each λ from 0 to 1 (reward²).
        variance: of the mean gradient of the batch, at each λ (reward²).
        advantage_bias_squared: mean square of the advantage's bias, at each λ (reward²).
        gae_lambda: the λ that is marked.
        return_weights: (1 − λ)·λᵏ, one for each k from 0.
        later_weight: what all longer returns weigh together.
        trace_weights: (γλ)ᵏ, one for each k from 0.
        title: critic and batch, in words.

    Returns:
        Three panels; the diamond is the least squared error.
    """
    bias, noise = np.array(bias_squared), np.array(variance)
    lambdas = np.linspace(0, 1, len(bias))
    error = bias + noise
    here, best = int(np.abs(lambdas - gae_lambda).argmin()), int(error.argmin())
    with style():
        picture = figure(10, 3.6)
        left, middle, right = picture.subplots(1, 3, width_ratios=(1, 1.2, 1))

        steps = np.arange(len(return_weights))
        left.bar(steps, return_weights, 0.72, color=NEW_POLICY, label="return, (1 − λ)·λᵏ")
        left.bar(len(steps) + 1, later_weight, 0.9, color="white", edgecolor=NEW_POLICY)
        left.plot(steps, trace_weights, ".-", color=INK, linewidth=1, label="TD error, (γλ)ᵏ")
        left.set(title=f"What λ = {gae_lambda:g} weighs", xlabel="steps k later", ylabel="weight")
        left.set(ylim=(0, 1.3))
        left.set_xticks([0, 5, 10, len(steps) + 1], labels=["0", "5", "10", "later"])
        left.set_yticks([0, 0.5, 1])
        left.legend(fontsize=8, loc="upper right")

        middle.plot(lambdas, bias, "--", color=OLD_POLICY, label="bias²")
        middle.plot(lambdas, noise, ":", color=INK, label="variance/n")
        middle.plot(lambdas, error, color=NEW_POLICY, linewidth=2.4, label="their sum")
        middle.plot(lambdas[best], error[best], "D", mfc="white", mec=GOAL, mew=1.8, ms=9)
        middle.annotate(
            f"best λ {lambdas[best]:.2f}", (lambdas[best], error[best]), xytext=(0, 11),
            textcoords="offset points", ha="right" if lambdas[best] > 0.85 else "center",
            fontsize=9, fontweight="bold",
        )  # fmt: skip
        middle.plot(gae_lambda, error[here], "o", color=INK, ms=7)
        middle.set(title=title, xlabel="λ", ylabel="squared error")
        middle.set(xlim=(0, 1.03), ylim=(0, 2.4 * error[0]))
        middle.legend(fontsize=8, ncols=3, loc="upper center", columnspacing=1, handlelength=1.6)

        right.plot(lambdas, np.sqrt(bias), "--", color=OLD_POLICY, label="gradient")
        right.plot(lambdas, np.sqrt(advantage_bias_squared), color=WORSE, label="advantage")
        right.set(title="The two biases", xlabel="λ", ylabel="bias (reward)", xlim=(0, 1.03))
        right.set_ylim(0, max(1.35 * right.get_ylim()[1], 0.1))
        right.legend(fontsize=8, ncols=2, loc="upper center")
        for axes in (middle, right):
            axes.axvline(gae_lambda, color=INK, linewidth=0.8, zorder=1)
            axes.set_xticks([0, 0.5, 1])
        return picture
