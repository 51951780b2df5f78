"""Write down what torchrl, verl and TRL answer to small batches of tokens.

    python -m benchmarks.parity_tokens --libraries FOLDER

torchrl is installed with the extra `parity`. verl and TRL need several hundred megabytes of other
libraries to be imported, of which their formulas use none. So FOLDER holds what
`pip install --no-deps --target FOLDER verl trl` puts there, and stand-ins take the place of what is
missing: verl's `core_algos` is imported whole; of TRL's trainers for GRPO, RLOO and DPO the
statements from one to another are taken from the source of a method, and called on an object that
holds the settings.

Only numbers are stored, in `tests/golden/parity_tokens.json`, with the versions that gave them;
`tests/test_variants_parity.py` compares the package with them.
"""

import argparse
import ast
import importlib
import importlib.machinery
import json
import sys
import types
from dataclasses import dataclass
from importlib.metadata import distributions, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Generator, Tensor, nn

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "parity_tokens.json"
GAMMA, GAE_LAMBDA, EPSILON_LOW, EPSILON_HIGH, DUAL = 0.97, 0.9, 0.2, 0.28, 1.5
MAX_LENGTH = 6
Tensors = dict[str, Tensor]


def draw() -> Tensors:
    """Draw 8 answers of 1 to 6 tokens to 3 prompts, in numbers that float32 holds exactly."""
    generator = Generator().manual_seed(15)

    def numbers(low: int, high: int) -> Tensor:
        return torch.randint(low, high, (8, MAX_LENGTH), generator=generator) / 128

    lengths = torch.tensor([6, 1, 4, 5, 3, 6, 2, 4])
    mask = torch.arange(MAX_LENGTH) < lengths[:, None]
    log_probs_old = numbers(-400, -20)
    return {
        "mask": mask,
        "groups": torch.tensor([0, 1, 0, 2, 1, 0, 2, 1]),
        "rewards": numbers(-100, 100).masked_fill(~mask, 0),
        "values": numbers(-100, 100).masked_fill(~mask, 0),
        "advantages": numbers(-200, 200).masked_fill(~mask, 0),
        "log_probs_old": log_probs_old,
        "log_probs": log_probs_old + numbers(-70, 70),
        "log_probs_reference": log_probs_old + numbers(-70, 70),
    }


# --- torchrl -------------------------------------------------------------------------------------


def ask_torchrl(given: Tensors) -> dict[str, Any]:
    """Ask torchrl for GAE over tokens and for three losses."""
    functional = importlib.import_module("torchrl.objectives.value.functional")
    mask, values = given["mask"], given["values"].double()
    last = torch.arange(MAX_LENGTH) == mask.sum(1, keepdim=True) - 1
    following = torch.cat([values[:, 1:], torch.zeros(8, 1).double()], dim=1)
    advantages, returns = functional.generalized_advantage_estimate(
        GAMMA, GAE_LAMBDA, values[..., None], following[..., None],
        given["rewards"].double()[..., None], last[..., None], last[..., None],
    )  # fmt: skip
    losses = {
        "token_mean": torchrl_loss(given, "token_mean", (EPSILON_LOW, EPSILON_LOW)),
        "sequence_mean": torchrl_loss(given, "prompt_mean", (EPSILON_LOW, EPSILON_LOW)),
        "two edges": torchrl_loss(given, "token_mean", (EPSILON_LOW, EPSILON_HIGH)),
    }
    return {
        "gae": advantages.squeeze(-1).masked_fill(~mask, 0).tolist(),
        "gae, returns": returns.squeeze(-1).masked_fill(~mask, 0).tolist(),
        **losses,
    }


def torchrl_loss(given: Tensors, aggregation: str, edges: tuple[float, float]) -> float:
    """Ask torchrl's GRPOLoss, with a distribution that answers the stored log-probabilities."""
    grpo = importlib.import_module("torchrl.objectives.llm.grpo")
    tensordict = importlib.import_module("tensordict").TensorDict
    mask = given["mask"]

    class Known:
        def __init__(self) -> None:
            self.mask = mask

        def log_prob(self, _: Tensor) -> Tensor:
            return given["log_probs"].double()

    class Actor(nn.Module):
        in_keys: tuple[str, ...] = ()

        def get_dist(self, *_: Any, **__: Any) -> Known:
            return Known()

    loss = grpo.GRPOLoss(
        Actor(), clip_epsilon=edges, aggregation=aggregation, entropy_bonus=False,
        masking_strategy="generic", device=torch.device("cpu"),
    )  # fmt: skip
    answer = loss(
        tensordict(
            {
                "tokens": {"full": torch.zeros(mask.shape, dtype=torch.long)},
                "log_probs": {"full": given["log_probs_old"].double()},
                "advantage": given["advantages"].double()[..., None],
            },
            batch_size=[8],
        )
    )
    return answer.loss_objective.sum().item()


# --- verl ----------------------------------------------------------------------------------------


class StandIn(types.ModuleType):
    """A module whose every name is an empty class: enough for annotations and base classes."""

    __version__ = "0"

    def __init__(self, name: str):
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        """Give an empty class of that name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)})


class Missing:
    """Finds a stand-in for the libraries named."""

    def __init__(self, roots: set[str]):
        self.roots = roots

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Answer for those libraries and what is in them."""
        if name.split(".")[0] in self.roots:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> StandIn:
        """Make the stand-in."""
        return StandIn(spec.name)

    def exec_module(self, module: Any) -> None:
        """Leave it as it is."""


def import_verl(folder: Path) -> Any:
    """Import verl's formulas without the packages around them."""
    for name in ("verl", "verl.trainer", "verl.trainer.ppo", "verl.utils"):
        module = types.ModuleType(name)
        module.__path__ = [str(folder.joinpath(*name.split(".")))]
        sys.modules[name] = module
    for name in ("verl.trainer.config", "verl.workers", "verl.workers.config"):
        sys.modules[name] = StandIn(name)
    sys.meta_path.append(Missing({"omegaconf", "transformers", "ray"}))
    groupwise = importlib.import_module("verl.utils.groupwise")
    utils: Any = sys.modules["verl.utils"]
    utils.as_torch_index, utils.group_mean_std = groupwise.as_torch_index, groupwise.group_mean_std
    return importlib.import_module("verl.trainer.ppo.core_algos")


def ask_verl(given: Tensors, folder: Path) -> dict[str, Any]:
    """Ask verl for advantages, aggregations, clips and KL estimates."""
    theirs = import_verl(folder)
    mask, groups = given["mask"].float(), given["groups"].numpy()
    rewards = given["rewards"]
    new, old, advantages = given["log_probs"], given["log_probs_old"], given["advantages"]

    class Settings(theirs.ActorConfig):
        clip_ratio = EPSILON_LOW
        clip_ratio_low, clip_ratio_high = EPSILON_LOW, EPSILON_HIGH
        global_batch_info: dict[str, Any] = {}  # noqa: RUF012  (as verl has it)

        def get(self, name: str, default: Any) -> Any:
            return DUAL if name == "clip_ratio_c" else default

    class NoLowerEdge(Settings):
        clip_ratio_low = 1.0

    gae, returns = theirs.compute_gae_advantage_return(
        rewards, given["values"], mask, GAMMA, GAE_LAMBDA
    )
    grpo, rloo = theirs.compute_grpo_outcome_advantage, theirs.compute_rloo_outcome_advantage
    baseline = theirs.compute_reinforce_plus_plus_baseline_outcome_advantage
    plus = theirs.compute_reinforce_plus_plus_outcome_advantage
    aggregated = {
        f"aggregate, {mode}": theirs.agg_loss(advantages, mask, mode)
        for mode in (
            "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"
        )
    }  # fmt: skip
    estimates = {
        f"kl, {k}": theirs.kl_penalty(new, given["log_probs_reference"], k) * mask
        for k in ("k1", "k2", "k3")
    }
    answers = {
        "gae, whitened": gae * mask,
        "gae, returns": returns * mask,
        "grpo": grpo(rewards.clone(), mask, groups)[0],
        "dr_grpo": grpo(rewards.clone(), mask, groups, norm_adv_by_std_in_grpo=False)[0],
        "rloo": rloo(rewards.clone(), mask, groups)[0],
        "reinforce_pp": plus(rewards.clone(), mask, SimpleNamespace(gamma=GAMMA))[0],
        "reinforce_pp_baseline": baseline(rewards.clone(), mask, groups)[0],
        **aggregated,
        "two edges and dual clip": theirs.compute_policy_loss_vanilla(
            old, new, advantages, mask, "token-mean", Settings()
        )[0],
        "gspo": theirs.compute_policy_loss_gspo(
            old, new, spread(advantages, mask), mask, "seq-mean-token-mean", Settings()
        )[0],
        "cispo": theirs.compute_policy_loss_cispo(
            old, new, advantages, mask, "token-mean", NoLowerEdge()
        )[0],
        **estimates,
    }
    return {name: answer.double().tolist() for name, answer in answers.items()}


def spread(advantages: Tensor, mask: Tensor) -> Tensor:
    """Give every token of an answer the mean advantage of the answer."""
    return (advantages * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True) * mask


# --- TRL -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """Statements of a method of one of TRL's trainers.

    Attributes:
        trainer: "grpo", "rloo" or "dpo".
        method: its name.
        start: how the first statement begins; "" for the first of all.
        end: how the statement behind the last one begins.
        result: which of its names is given back.
    """

    trainer: str
    method: str
    start: str
    end: str
    result: str

    def run(self, folder: Path, names: dict[str, Any]) -> Any:
        """Run the statements with these names, and give the result."""
        source = (folder / "trl" / "trainer" / f"{self.trainer}_trainer.py").read_text("utf-8")
        body = next(
            node.body
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef) and node.name == self.method
        )
        texts = [ast.unparse(node) for node in body]
        first = next(i for i, text in enumerate(texts) if text.startswith(self.start))
        last = next(i for i, text in enumerate(texts) if i > first and text.startswith(self.end))
        known = {"torch": torch, "F": nn.functional, **names}
        exec(compile(ast.Module(body=body[first:last], type_ignores=[]), "trl", "exec"), known)
        return known[self.result]


GRPO_LOSS = Passage("grpo", "_compute_loss", "", "if self._entropy_bonus", "loss")
RLOO_LOSS = Passage("rloo", "_compute_loss", "logps =", "mode =", "loss")
RLOO_ADVANTAGES = Passage(
    "rloo", "_generate_and_score_completions", "if self.beta != 0.0:\n    per_token_kl",
    "if self.normalize_advantages", "advantages",
)  # fmt: skip
DPO_LOSS = Passage("dpo", "_compute_loss", "per_token_logps =", "if self.aux_loss_enabled", "loss")
PRICE, BETA = 0.05, 0.3


def ask_trl(given: Tensors, folder: Path) -> dict[str, Any]:
    """Ask TRL's trainers for the losses that they name, and for RLOO's advantages."""
    return {**ask_grpo(given, folder), **ask_rloo(given, folder), "dpo": ask_dpo(given, folder)}


def ask_rloo(given: Tensors, folder: Path) -> dict[str, Any]:
    """Ask the trainer of RLOO about two groups of four: advantages, and the clipped loss."""
    mask = given["mask"].double()
    advantages = RLOO_ADVANTAGES.run(
        folder,
        {
            "self": SimpleNamespace(beta=PRICE),
            "num_generations": 4,
            "completion_mask": mask,
            "gather": lambda numbers: numbers,
            "nanstd": lambda numbers, dim: numbers.std(dim),
            "rewards": given["rewards"].double().sum(1),
            "old_per_token_logps": given["log_probs_old"].double(),
            "ref_per_token_logps": given["log_probs_reference"].double(),
        },
    )
    loss = RLOO_LOSS.run(
        folder,
        {
            "self": SimpleNamespace(epsilon_low=EPSILON_LOW, epsilon_high=EPSILON_HIGH),
            "per_token_logps": given["log_probs"].double(),
            "completion_mask": mask,
            "inputs": {
                "old_logps": (given["log_probs_old"].double() * mask).sum(1),
                "advantages": spread(given["advantages"].double(), mask)[:, 0],
            },
        },
    )
    return {"rloo, advantages": advantages.tolist(), "rloo, loss": loss.item()}


def ask_dpo(given: Tensors, folder: Path) -> float:
    """Ask the trainer of DPO: the first four answers are chosen, the last four rejected."""
    mask = given["mask"].double()
    chosen, rejected = (given["log_probs_reference"].double() * mask).sum(1).chunk(2)
    return DPO_LOSS.run(
        folder,
        {
            "self": SimpleNamespace(
                ld_alpha=None, precompute_ref_logps=True, f_divergence_type="reverse_kl",
                beta=BETA, loss_types=["sigmoid"], loss_weights=[1.0], use_weighting=False,
            ),
            "seq_len": MAX_LENGTH,
            "outputs": SimpleNamespace(log_probs=given["log_probs"].double() * mask),
            "inputs": {"ref_chosen_logps": chosen, "ref_rejected_logps": rejected},
        },
    ).item()  # fmt: skip


def ask_grpo(given: Tensors, folder: Path) -> dict[str, Any]:
    """Ask the trainer of GRPO for the losses that it names."""
    mask = given["mask"].double()
    answers = {}
    settings = {
        "grpo": {},
        "bnpo": {},
        "dr_grpo": {},
        "dapo": {},
        "cispo": {"epsilon_high": 1 + EPSILON_HIGH},
        "sequence": {"loss_type": "grpo", "importance_sampling_level": "sequence"},
        "grpo with k3": {"loss_type": "grpo", "beta": 0.3},
    }
    for name, special in settings.items():
        trainer = SimpleNamespace(
            **{
                "loss_type": name, "importance_sampling_level": "token", "beta": 0.0,
                "epsilon_low": EPSILON_LOW, "epsilon_high": EPSILON_HIGH,
                "top_entropy_quantile": 1.0, "off_policy_mask_threshold": None, "use_vllm": False,
                "aux_loss_enabled": False, "max_completion_length": MAX_LENGTH,
                "current_gradient_accumulation_steps": 1,
                "vllm_importance_sampling_correction": False,
                "model": SimpleNamespace(training=True),
                "accelerator": SimpleNamespace(num_processes=1),
                "args": SimpleNamespace(
                    delta=None, use_bias_correction_kl=False, steps_per_generation=1
                ),
                "_get_per_token_logps_and_entropies": lambda *_, **__: (
                    given["log_probs"].double(), None, None
                ),
                **special,
            }
        )  # fmt: skip
        advantages = given["advantages"].double()
        inputs = {
            "prompt_ids": torch.zeros(8, 1), "prompt_mask": torch.ones(8, 1),
            "completion_ids": torch.zeros(mask.shape), "completion_mask": mask,
            "advantages": spread(advantages, mask)[:, :1] if name == "sequence" else advantages,
            "old_per_token_logps": given["log_probs_old"].double(),
            "ref_per_token_logps": given["log_probs_reference"].double(),
            "num_items_in_batch": mask.sum(),
        }  # fmt: skip
        names = {"self": trainer, "model": trainer.model, "inputs": inputs}
        answers[name] = GRPO_LOSS.run(folder, names).item()
    return answers


def main() -> None:
    """Ask the three libraries and write their answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=Path, required=True)
    folder = parser.parse_args().libraries
    given = draw()
    content = {
        "written by": "python -m benchmarks.parity_tokens --libraries FOLDER",
        "versions": {
            "torch": torch.__version__,
            "torchrl": version("torchrl"),
            **{d.name: d.version for d in distributions(path=[str(folder)])},
        },
        "settings": {
            "gamma": GAMMA, "gae_lambda": GAE_LAMBDA, "clip_low": EPSILON_LOW,
            "clip_high": EPSILON_HIGH, "most_punished": DUAL, "max_length": MAX_LENGTH,
            "price": PRICE, "beta": BETA,
        },
        "given": {name: tensor.tolist() for name, tensor in given.items()},
        "answers": {
            "torchrl": ask_torchrl(given),
            "trl": ask_trl(given, folder),
            "verl": ask_verl(given, folder),
        },
    }  # fmt: skip
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(GOLDEN)


if __name__ == "__main__":
    main()
