"""What a worker is kept from, and how much it may use.

Each part takes where the machine allows it; where not, the job runs all the same and its `isolation` says so:

    network         "blocked"    a network namespace without any interface, loopback included
                    "loopback"   the same with a loopback interface of its own, for a job that asks for it
    processes       "namespace"  nothing outlives the job, whatever it forks and however it detaches;
                    "group"      adopted orphans are killed too: enough unless the warden itself is killed
    process_view    "private"    /proc shows the job's own processes only
    files           "read-only"  everything but the job's folder (and `writable`) is read-only
    capabilities    "dropped"    root keeps its rights over files and no others

A part that did not take holds the reason instead, such as "not blocked: Operation not permitted".
As a user other than root, a user namespace gives the rights to make the others.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

from kernel_audit.worker import linux

Isolation = dict[str, str]

# After the allowance is used up, the worker still has to be able to write down that it was.
_RESERVE_BYTES = 64 << 20


def separate(writable: list[str], *, loopback: bool = False) -> Isolation:
    """Puts this process, or its later children, into namespaces of their own. The process must have one thread."""
    isolation: Isolation = {}
    user_namespace = False
    try:
        linux.unshare(linux.CLONE_NEWNET)
    except OSError:
        user_namespace = _enter_user_namespace()
        _attempt(isolation, "network", "not blocked", lambda: linux.unshare(linux.CLONE_NEWNET))
    if loopback and "network" not in isolation:  # where the network is not blocked, the machine's own loopback is there
        _attempt(isolation, "network", "blocked, loopback too", linux.raise_loopback)
        isolation.setdefault("network", "loopback")
    isolation.setdefault("network", "blocked")
    isolation["user_namespace"] = "yes" if user_namespace else "no"
    _attempt(isolation, "processes", "group", lambda: linux.unshare(linux.CLONE_NEWPID))
    isolation.setdefault("processes", "namespace")
    _attempt(isolation, "files", "writable", lambda: _read_only_files(writable))
    isolation.setdefault("files", "read-only")
    return isolation


def confine(isolation: Isolation) -> None:
    """The part that the worker does itself, before any code of the job runs."""
    if isolation["processes"] == "namespace" and isolation["files"] == "read-only":
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        _attempt(isolation, "process_view", "shared", lambda: linux.mount("proc", "/proc", "proc", flags))
        isolation.setdefault("process_view", "private")
    else:
        isolation["process_view"] = "shared: it needs namespaces of processes and of mounts"
    _attempt(isolation, "capabilities", "kept", linux.keep_only_file_capabilities)
    isolation.setdefault("capabilities", "dropped")
    linux.no_new_privileges()


def limit(memory_bytes: int) -> None:
    """Bounds the data segment to what is used now plus `memory_bytes`; a file to `memory_bytes`; no core dump.

    The data segment, not the address space: XLA and its thread pools reserve gigabytes of addresses that
    nobody uses. Not counted are file-backed and shared mappings.
    """
    soft = _data_bytes() + memory_bytes
    _lower(resource.RLIMIT_DATA, soft, soft + _RESERVE_BYTES)
    _lower(resource.RLIMIT_FSIZE, memory_bytes, memory_bytes)
    _lower(resource.RLIMIT_CORE, 0, 0)


def use_reserve() -> None:
    """Opens the reserve, so that a job that ran out of memory can still say so."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _lower(what: int, soft: int, hard: int) -> None:
    """Sets a limit, never above what holds already."""
    _, present = resource.getrlimit(what)
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    resource.setrlimit(what, (soft, hard))


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status has no VmData")


def _attempt(isolation: Isolation, part: str, otherwise: str, action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        isolation[part] = f"{otherwise}: {error.strerror}"


def _enter_user_namespace() -> bool:
    user, group = os.getuid(), os.getgid()
    try:
        linux.unshare(linux.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError:
        return False
    return True


def _read_only_files(writable: list[str]) -> None:
    """A private view of the files in which only `writable` can be changed. Device nodes still work."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    outer_first = sorted(set(writable), key=len)  # a mount over an outer folder would hide those inside
    for path in outer_first:
        linux.mount(path, path, None, linux.MS_BIND | linux.MS_REC)
    linux.set_read_only("/", True)
    try:
        for path in outer_first:
            linux.set_read_only(path, False)
    except OSError:
        linux.set_read_only("/", False)
        raise
