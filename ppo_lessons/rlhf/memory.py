"""What four models cost in memory: a ledger that is computed, from the toy to 70 billion weights.

a model that learns     weights + master copy + gradients + Adam's two moments + activations
a model that is asked   weights
while answers are drawn keys and values of every layer and token
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppo_lessons.rlhf.checks import check_whole
from ppo_lessons.tokens.model import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """What decides how many weights a decoder has.

    Attributes:
        layers: blocks of attention and MLP.
        width: d, entries of a hidden vector.
        heads: of attention.
        key_heads: heads for which keys and values are stored; fewer than `heads` where several
            heads share them.
        mlp_width: entries of the MLP's hidden vector.
        vocabulary: V, tokens.
        positions: learned position vectors; 0 if positions are computed.
        gated: the MLP has a third matrix, a gate.
        biases: "none", "qkv" or "all": which linear layers have them.
        norm_vectors: vectors of length d in one normalisation, 1 (scale) or 2 (scale and shift).
        tied: the output layer is the embedding itself, without weights of its own.
        head_width: entries of a head; d / heads if left at 0.
    """

    layers: int
    width: int
    heads: int
    key_heads: int
    mlp_width: int
    vocabulary: int
    positions: int = 0
    gated: bool = True
    biases: str = "none"
    norm_vectors: int = 1
    tied: bool = False
    head_width: int = 0

    def __post_init__(self) -> None:
        """Check every number.

        Raises:
            ValueError: with the first that is out of its range.
        """
        names = ("layers", "width", "heads", "key_heads", "mlp_width", "vocabulary")
        check_whole(**{name: getattr(self, name) for name in names})
        if self.heads % self.key_heads:
            raise ValueError(
                f"key_heads is {self.key_heads} for {self.heads} heads; expected a divisor, since "
                "each stored head serves the same number of heads. Choose key_heads so."
            )
        if not self.head_width and self.width % self.heads:
            raise ValueError(
                f"width is {self.width} for {self.heads} heads; expected a multiple. Choose "
                "another width, or give head_width."
            )
        if self.biases not in ("none", "qkv", "all"):
            raise ValueError(
                f"biases is {self.biases!r}; expected 'none', 'qkv' or 'all'. Choose one of them."
            )

    @property
    def head_size(self) -> int:
        """Entries of one head."""
        return self.head_width or self.width // self.heads

    @property
    def key_width(self) -> int:
        """Entries of all keys of one token in one layer; its values have as many."""
        return self.key_heads * self.head_size


def transformer_of(config: ModelConfig) -> Transformer:
    """Describe the lesson's own model.

    Args:
        config: its sizes.

    Returns:
        The same in the words of this ledger.
    """
    return Transformer(
        layers=config.num_layers,
        width=config.width,
        heads=config.num_heads,
        key_heads=config.num_heads,
        mlp_width=4 * config.width,
        vocabulary=config.vocabulary_size,
        positions=config.context_length,
        gated=False,
        biases="all",
        norm_vectors=2,
    )


TRANSFORMERS: dict[str, Transformer] = {
    "toy": transformer_of(ModelConfig()),
    "0.5 B": Transformer(
        layers=24, width=896, heads=14, key_heads=2, mlp_width=4864, vocabulary=151_936,
        biases="qkv", tied=True,
    ),
    "8 B": Transformer(
        layers=32, width=4096, heads=32, key_heads=8, mlp_width=14_336, vocabulary=128_256
    ),
    "70 B": Transformer(
        layers=80, width=8192, heads=64, key_heads=8, mlp_width=28_672, vocabulary=128_256
    ),
}  # fmt: skip
"""The lesson's own, and three public shapes: Qwen2.5-0.5B, Llama 3 8B, Llama 3 70B."""


def num_weights(shape: Transformer, *, scalar_head: bool = False) -> int:
    """Count the weights of a decoder.

        embedding V·d, positions, per layer (2·d·(h + h_kv)·d_head + MLP + norms + biases),
        last norm, output V·d unless tied

    Args:
        shape: of the model.
        scalar_head: the model gives one number per token instead of logits, as a critic and a
            reward model do: d + 1 weights instead of the output layer.

    Returns:
        The number of weights.
    """
    d, query_width, key_width = shape.width, shape.heads * shape.head_size, shape.key_width
    attention = 2 * d * (query_width + key_width)
    matrices = 3 if shape.gated else 2
    mlp = matrices * d * shape.mlp_width
    norms = 2 * shape.norm_vectors * d
    biases = 0
    if shape.biases != "none":
        biases += query_width + 2 * key_width
    if shape.biases == "all":
        biases += d + (matrices - 1) * shape.mlp_width + d
    layers = shape.layers * (attention + mlp + norms + biases)
    outside = (shape.vocabulary + shape.positions) * d + shape.norm_vectors * d
    return layers + outside + output_weights(shape, scalar_head=scalar_head)


def output_weights(shape: Transformer, *, scalar_head: bool) -> int:
    """Count the weights after the last norm.

    Args:
        shape: of the model.
        scalar_head: one number per token instead of logits.

    Returns:
        d + 1, or V·d with its biases, or 0 where the embedding is used twice.
    """
    if scalar_head:
        return shape.width + 1
    bias = shape.vocabulary if shape.biases == "all" else 0
    return bias if shape.tied else shape.vocabulary * shape.width + bias


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Bytes of one number, by what it is for.

    Attributes:
        weights: as the forward pass reads them.
        master: a second, exact copy that the optimiser changes; 0 if `weights` are exact.
        gradients: of one weight.
        moments: Adam's two running means, together.
        cache: of a key or a value; of an activation, too.
    """

    weights: int = 2
    master: int = 4
    gradients: int = 2
    moments: int = 8
    cache: int = 2


MIXED = Precision()
"""Weights in 16 bits, Adam in 32: 16 bytes for each weight that learns."""
FULL = Precision(weights=4, master=0, gradients=4, moments=8, cache=4)
"""Everything in 32 bits, as in these lessons: also 16 bytes for each weight that learns."""


@dataclass(frozen=True)
class ModelMemory:
    """The bytes of one model, by what they are for.

    Attributes:
        model: "policy", "critic", "reference" or "reward model".
        weights: read by the forward pass, the master copy included.
        gradients: 0 for a model that does not learn.
        optimizer: Adam's moments; 0 for a model that does not learn.
        activations: what the backward pass needs of one micro-batch; 0 without one.
        cache: keys and values of the answers that are being drawn; the policy's only.
    """

    model: str
    weights: int
    gradients: int
    optimizer: int
    activations: int
    cache: int

    @property
    def total(self) -> int:
        """Bytes in all."""
        return (
            self.weights + self.gradients + self.optimizer + self.activations + self.cache
        )  # fmt: skip


def model_memory(
    shape: Transformer,
    *,
    num_answers: int,
    micro_batch: int,
    num_tokens: int,
    precision: Precision = MIXED,
    checkpointing: bool = True,
) -> tuple[ModelMemory, ...]:
    """Give the ledger of the four models of RLHF, all of one shape.

    Policy and critic learn: weights, gradients, moments, activations. Reference and reward model
    are asked: weights. The policy also stores the keys and values of all answers that it draws at
    once. Leaves out what frameworks add: buffers, fragments, logits, a second copy of the policy
    in an engine of its own.

    Args:
        shape: of all four; critic and reward model have one output per token.
        num_answers: answers that are drawn at the same time.
        micro_batch: sequences of one forward and backward pass.
        num_tokens: L, tokens of prompt and answer.
        precision: bytes of each kind of number.
        checkpointing: keep one vector per layer and token, and compute the rest again.

    Returns:
        One row per model, in bytes.

    Raises:
        ValueError: if a number is not above 0.
    """
    check_whole(num_answers=num_answers, micro_batch=micro_batch, num_tokens=num_tokens)
    kept = activation_bytes(
        shape, micro_batch=micro_batch, num_tokens=num_tokens, checkpointing=checkpointing
    )
    kept = kept * precision.cache // 2
    cache = cache_bytes(
        shape, num_answers=num_answers, num_tokens=num_tokens, bytes_each=precision.cache
    )

    def row(model: str, *, learns: bool, scalar_head: bool, cache: int) -> ModelMemory:
        count = num_weights(shape, scalar_head=scalar_head)
        return ModelMemory(
            model,
            weights=count * (precision.weights + (precision.master if learns else 0)),
            gradients=count * precision.gradients if learns else 0,
            optimizer=count * precision.moments if learns else 0,
            activations=kept if learns else 0,
            cache=cache,
        )

    return (
        row("policy", learns=True, scalar_head=False, cache=cache),
        row("critic", learns=True, scalar_head=True, cache=0),
        row("reference", learns=False, scalar_head=False, cache=0),
        row("reward model", learns=False, scalar_head=True, cache=0),
    )


def cache_bytes(
    shape: Transformer, *, num_answers: int, num_tokens: int, bytes_each: int = 2
) -> int:
    """Count the bytes of all keys and values.

        2·layers·h_kv·d_head·L·answers·bytes

    Args:
        shape: of the model.
        num_answers: that are drawn at the same time.
        num_tokens: L, tokens of prompt and answer.
        bytes_each: of one number.

    Returns:
        Bytes.
    """
    return 2 * shape.layers * shape.key_width * num_tokens * num_answers * bytes_each


def activation_bytes(
    shape: Transformer, *, micro_batch: int, num_tokens: int, checkpointing: bool
) -> int:
    """Estimate the bytes that a backward pass needs of its forward pass, in 16 bits.

        without checkpoints   layers·L·b·d·(34 + 5·h·L / d)
        with                  layers·2·L·b·d, and one layer of the above

    Args:
        shape: of the model.
        micro_batch: b, sequences.
        num_tokens: L, tokens of a sequence.
        checkpointing: keep the input of each layer only.

    Returns:
        Bytes. An estimate: it counts an MLP of four times d, dropout masks included, and a softmax
        that is stored.

    Source: Korthikanti et al. 2022, "Reducing activation recomputation in large transformer
    models".
    """
    numbers = num_tokens * micro_batch * shape.width
    one_layer = 34 * numbers + 5 * shape.heads * num_tokens**2 * micro_batch
    if checkpointing:
        return shape.layers * 2 * numbers + one_layer
    return shape.layers * one_layer


def tensor_bytes(tensors: Iterable[Tensor | None]) -> int:
    """Add up the bytes of tensors that exist: what a ledger is held against.

    Args:
        tensors: any; None counts nothing.

    Returns:
        Bytes.
    """
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def saved_bytes(forward: Callable[[], Tensor]) -> int:
    """Measure what autograd keeps of a forward pass for its backward pass, weights left out.

    Args:
        forward: runs the pass; its result is not used.

    Returns:
        Bytes of the storages that are kept, each counted once.
    """
    kept: dict[int, int] = {}
    tensors: list[Tensor] = []  # held, so that no address is used twice

    def keep(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter) and not isinstance(tensor._base, nn.Parameter):
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            tensors.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward()
    return sum(kept.values())
