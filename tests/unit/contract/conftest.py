from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_audit import conduct
from kernel_audit.contract import Audit
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.worker import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(size=1) as made:
        yield made


@pytest.fixture
def read(pool: Pool, tmp_path: Path) -> Callable[..., tuple[Audit, dict[str, str]]]:
    """read("text of an audit file", name=None): the audit that the worker makes of it."""
    count = iter(range(1000))

    def evaluate(text: str, name: str | None = None, candidate: str | None = None) -> tuple[Audit, dict[str, str]]:
        file = tmp_path / "audited.py"
        file.write_text(text, encoding="utf-8")
        asked = f"{file}:{name}" if name else str(file)
        question = conduct.Question(asked, candidate=candidate, limits=Limits(deadline_s=2.0))
        return conduct.evaluate(question, pool, tmp_path / f"job-{next(count)}")

    return evaluate
