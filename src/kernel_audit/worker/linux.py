"""The Linux calls that Python does not offer (unshare is there from 3.12 only). Each raises OSError."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_MOUNT_ATTR_RDONLY = 0x1
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture

_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x1, 0x40

_CAPABILITY_VERSION_3 = 0x2008_0522
_FILE_CAPABILITIES = 0b1111  # chown, dac_override, dac_read_search, fowner: what root needs to read a user's files

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leaves namespaces for new ones. With CLONE_NEWPID it is the later children that are in the new one."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def raise_loopback() -> None:
    """Brings up the loopback interface of this network namespace. Others in it, there are none, stay down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING))


def end_with_parent(signal_number: int) -> None:
    """Asks for a signal when the thread that forked this process ends."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    """No set-user-id program gives rights from now on."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    """mount(2) without data."""
    names = (None if each is None else os.fsencode(each) for each in (source, target, kind))
    _check(_libc.mount(*names, ctypes.c_ulong(flags), None), f"mount {target}")


def set_read_only(path: str, read_only: bool) -> None:
    """Makes the mount at `path` and all mounts below it read-only or writable. Needs Linux 5.12."""
    change = (ctypes.c_uint64 * 4)()
    change[0 if read_only else 1] = _MOUNT_ATTR_RDONLY
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(change),
        ctypes.c_size_t(ctypes.sizeof(change)),
    )
    _check(result, f"mount_setattr {path}")


def keep_only_file_capabilities() -> None:
    """Gives up every capability except those over files. What is left cannot trace, remount or leave namespaces."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    current = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(ctypes.byref(header), ctypes.byref(current)), "capget")
    kept = current[1] & _FILE_CAPABILITIES
    wanted = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(wanted)), "capset")


def _prctl(option: int, value: int) -> None:
    arguments = (ctypes.c_ulong(each) for each in (value, 0, 0, 0))
    _check(_libc.prctl(ctypes.c_int(option), *arguments), "prctl")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
