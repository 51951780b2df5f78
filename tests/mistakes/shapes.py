"""Classic mistakes of averaging over a mask."""

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


@breaks("masked_mean")
def mask_as_a_factor(values, mask=None):
    """Multiplies by the mask: 0·NaN is NaN, so what should not count spoils everything."""
    if mask is None:
        return values.mean()
    return (values * mask).sum() / mask.sum().clamp(min=1)


@breaks("masked_mean")
def divided_by_all_entries(values, mask=None):
    """Divides by the number of entries, so a batch with more padding gets a smaller mean."""
    if mask is None:
        return values.mean()
    return values.masked_fill(~mask, 0).mean()


@breaks("masked_mean")
def empty_mask_divides_by_zero(values, mask=None):
    """Averages the chosen entries only: an empty choice gives NaN instead of 0."""
    return values.mean() if mask is None else values[mask].mean()


@breaks("masked_mean")
def sum_for_the_mean(values, mask=None):
    """Sums: the size of a loss, and of a step, grows with the batch."""
    return values.sum() if mask is None else values.masked_fill(~mask, 0).sum()


@breaks("masked_mean")
def mask_inverted(values, mask=None):
    """Averages what should be left out."""
    if mask is None:
        return values.mean()
    return values.masked_fill(mask, 0).sum() / (~mask).sum().clamp(min=1)
