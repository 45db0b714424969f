"""What `ptxas` says of a GPU program: registers, spills, shared memory. It comes with the nvcc wheel and needs no GPU."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
from pathlib import Path

from kernel_audit.records import GpuKernel

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SECONDS = 60.0


def find_ptxas() -> Path | None:
    """The `ptxas` of the installed nvcc wheel; None where there is none."""
    for package in ("nvidia.cuda_nvcc", "nvidia.cu13"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (found.submodule_search_locations or []) if found else []:
            path = Path(folder) / "bin" / "ptxas"
            if path.is_file():
                return path
    return None


def assembled(ptx: str, folder: Path) -> list[GpuKernel]:
    """One record an entry function; empty without `ptxas`, or where it refuses the text."""
    program, target = find_ptxas(), re.search(r"^\.target\s+(sm_\w+)", ptx, re.MULTILINE)
    if program is None or target is None:
        return []
    source = folder / "program.ptx"
    source.write_text(ptx, "utf-8")
    command = [str(program), "-v", f"-arch={target.group(1)}", str(source), "-o", str(folder / "program.cubin")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return read_ptxas(done.stderr + done.stdout) if done.returncode == 0 else []


def read_ptxas(text: str) -> list[GpuKernel]:
    """The entry functions in what `ptxas -v` prints."""
    made = []
    for part in re.split(r"(?=ptxas info\s*: Compiling entry function)", text):
        entry, stack, used = _ENTRY.search(part), _STACK.search(part), _USED.search(part)
        if entry is None or used is None:
            continue
        shared = _SHARED.search(part)
        frame, stores, loads = (int(each) for each in stack.groups()) if stack else (0, 0, 0)
        made.append(
            GpuKernel(
                name=entry.group(1),
                registers=int(used.group(1)),
                spill_store_bytes=stores,
                spill_load_bytes=loads,
                shared_bytes=int(shared.group(1)) if shared else 0,
                stack_bytes=frame,
            )
        )
    return made


def ptx_digest(ptx: str) -> str:
    """Digest of PTX text without its comments, which hold versions and places."""
    lines = [line.split("//", 1)[0].rstrip() for line in ptx.splitlines()]
    return "sha256:" + hashlib.sha256("\n".join(line for line in lines if line).encode()).hexdigest()
