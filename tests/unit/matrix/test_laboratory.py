"""A laboratory remembers what has finished, also over the end of its process."""

from __future__ import annotations

from pathlib import Path

from kernel_audit.matrix.laboratory import Laboratory, Limits
from kernel_audit.worker import JobResult


class Pretended:
    """A pool that finishes every job at once and counts them."""

    def __init__(self) -> None:
        self.jobs = []

    def run(self, job) -> JobResult:
        self.jobs.append(job)
        steps = {"one": {"answer": len(self.jobs)}}
        return JobResult("finished", value=len(self.jobs), steps=steps, isolation={"network": "none"})


def laboratory(work: Path, pool: Pretended | None = None, **others) -> tuple[Laboratory, Pretended]:
    pool = pool or Pretended()
    return Laboratory(pool, work, [work], Limits(deadline_s=1.0), 2, **others), pool


def test_the_same_job_runs_once(tmp_path):
    made, pool = laboratory(tmp_path)
    first = made.run("job", "m:f", {"x": 1})
    again = made.run("job", "m:f", {"x": 1})
    assert (first.result.value, again.result.value, len(pool.jobs)) == (1, 1, 1)
    assert again.folder == first.folder and made.isolation == {"network": "none"}


def test_other_arguments_settings_or_functions_are_other_jobs(tmp_path):
    made, pool = laboratory(tmp_path)
    made.run("job", "m:f", {"x": 1})
    made.run("job", "m:f", {"x": 2})
    made.run("job", "m:g", {"x": 1})
    made.run("job", "m:f", {"x": 1}, jax_config={"jax_enable_x64": True})
    assert len(pool.jobs) == 4
    assert len({job.folder for job in pool.jobs}) == 4


def test_a_new_laboratory_in_the_same_place_knows_what_was_done(tmp_path):
    first, _ = laboratory(tmp_path)
    done = first.run("job", "m:f", {"x": 1})
    second, pool = laboratory(tmp_path)
    again = second.run("job", "m:f", {"x": 1})
    assert pool.jobs == []
    assert again.result.steps == done.result.steps and again.folder == done.folder
    assert again.result.outcome == "finished"
    assert second.isolation == {"network": "none"}  # what held then is known now


def test_a_job_that_was_cut_off_runs_again_in_a_fresh_folder(tmp_path):
    first, _ = laboratory(tmp_path)
    folder = first.run("job", "m:f", {"x": 1}).folder
    (record,) = (tmp_path / "done").iterdir()
    record.rename(record.with_suffix(".tmp"))  # killed before the rename
    second, pool = laboratory(tmp_path)
    again = second.run("job", "m:f", {"x": 1})
    assert len(pool.jobs) == 1
    assert again.folder != folder and again.folder.parent == folder.parent


def test_jobs_of_the_references_can_be_shared(tmp_path):
    shared = tmp_path / "shared"
    one, pool = laboratory(tmp_path / "one", references=shared)
    two, _ = laboratory(tmp_path / "two", pool, references=shared)
    one.run("expect", "m:f", {"x": 1}, reference=True)
    one.run("capture", "m:f", {"x": 1})
    two.run("expect", "m:f", {"x": 1}, reference=True)
    two.run("capture", "m:f", {"x": 1})
    assert len(pool.jobs) == 3


def test_limits_reach_the_job(tmp_path):
    pool = Pretended()
    Laboratory(pool, tmp_path, [tmp_path], Limits(3.5, 1 << 30), 1).run("job", "m:f", {})
    (job,) = pool.jobs
    assert (job.deadline_s, job.memory_bytes, job.import_path) == (3.5, 1 << 30, (str(tmp_path),))
