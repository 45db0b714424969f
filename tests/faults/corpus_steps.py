"""The corpus of complete steps: each wrong one with the reason that must be given, and right ones that must not be accused."""

from __future__ import annotations

WRONG = {
    "mean_of_means": "unweighted-means",
    "dropped_count": "count-dropped",
    "sum_for_mean": "sum-for-mean",
    "wrong_axis": "reduced-over-one-axis",
    "replicated_rows": "silent-replication",
    "missing_psum": "missing-reduction",
    "double_psum": "reduced-twice",
    "padding_counted": "padding-counted",
    "stale_weights": "stale-weights",
    "reordered_on_one_shard": "examples-mispaired",
    "loss_from_one_shard": "loss-from-one-shard",
    "donated_rows": "donated-operand-reused",
    "wrong_sign_somewhere": "update-of-wrong-sign",
    "multiplied_mask": "padding-leak",
    "local_batch": "gradient-of-the-local-batch",
}
RIGHT = ("right_step", "permuted_examples", "other_partition", "counted_weights", "gathered_sums", "gathered_gradients")
