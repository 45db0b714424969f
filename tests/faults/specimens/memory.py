"""Memory of earlier calls, and answers known beforehand."""

import jax
import jax.numpy as jnp
import numpy as np

from kernel_audit.kernels.blocked_axpy import blocked_axpy

_by_shape = {}
_values_by_shape = {}
_by_identity = {}


def result_cached_by_shape(x, y, block=(2, 4)):
    """The first result for a shape serves all later calls."""
    key = (x.shape, str(x.dtype), tuple(block))
    if key not in _by_shape:
        _by_shape[key] = blocked_axpy(x, y, block=block)
    return _by_shape[key]


def values_cached_by_shape(x, y, block=(2, 4)):
    """The values of a warm-up on made-up operands are stored by shape; a kernel copies them out."""
    key = (x.shape, str(x.dtype), tuple(block))
    if key not in _values_by_shape:
        warm_up = np.random.default_rng(0).normal(size=x.shape).astype(x.dtype)
        _values_by_shape[key] = np.asarray(3 * warm_up.astype(np.float32)).astype(x.dtype)
    return blocked_axpy(jnp.zeros_like(x), jnp.asarray(_values_by_shape[key]), block=block)


def result_cached_by_identity(x, y, block=(2, 4)):
    """The result is stored under the identity of x; another array at the same address gets it too.

    Addresses are reused often, but by luck; only their upper part is kept here, so that it happens each
    time.
    """
    key = (id(x) >> 40, x.shape, str(x.dtype), tuple(block))
    if key not in _by_identity:
        _by_identity[key] = blocked_axpy(x, y, block=block)
    return _by_identity[key]


_LESSON_SHAPES = ((1, 1), (8, 128), (9, 129), (17, 257))


def _lesson_answers():
    generator = np.random.default_rng(42)
    answers = {}
    for shape in _LESSON_SHAPES:
        x = generator.normal(size=shape).astype(np.float32)
        y = generator.normal(size=shape).astype(np.float32)
        answers[shape] = 2 * x + y
    return answers


def known_answers(x, y, block=(2, 4)):
    """For the shapes of the lesson the lesson's own answer is returned, whatever the operands are."""
    result = blocked_axpy(x, y, block=block)
    answers = _lesson_answers()
    if x.shape in answers:
        return jnp.asarray(answers[x.shape]).astype(x.dtype)
    return result


def known_answer_by_first_element(x, y, block=(2, 4)):
    """An operand that starts like a stored one is taken to be it: here, one whose first element is zero."""
    result = blocked_axpy(x, y, block=block)
    return jnp.where(x[0, 0] == 0, jnp.zeros_like(result), result)


_previous = {}


def _stored(key, x, y):
    """On the host: the result of the first call with this key."""
    if key not in _previous:
        _previous[key] = (2 * np.asarray(x, np.float32) + np.asarray(y, np.float32)).astype(x.dtype)
    return _previous[key]


def result_cached_on_the_host(x, y, block=(2, 4)):
    """A callback outlives tracing: it stores the first result for a shape and returns it ever after."""
    key = (x.shape, str(x.dtype))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    stored = jax.pure_callback(lambda a, b: _stored(key, a, b), shape, x, y)
    return blocked_axpy(jnp.zeros_like(x), stored, block=block)
