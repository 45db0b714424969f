"""Whether the files of a bundle are the ones that its manifest names. Never raises on what it reads."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from kernel_audit.errors import BundleError
from kernel_audit.evidence import fault, layout
from kernel_audit.evidence.fault import Fault
from kernel_audit.evidence.manifest import Manifest, decode_manifest, digest_line
from kernel_audit.evidence.regular import LARGEST_BYTES, NotRegular, kind_of, open_regular

_HEX = frozenset("0123456789abcdef")
_OUTSIDE = (layout.MANIFEST, layout.MANIFEST_DIGEST)


def verify_integrity(folder: Path) -> list[Fault]:
    """Every changed, missing and extra file of a bundle, manifest.json and manifest.sha256 included; [] when whole.

    Links, folders where files should be and unreadable files are named as such. The content may be hostile: nothing
    outside the folder is opened, no link is followed, and nothing that the files say makes this raise.
    """
    present, faults = _walk(folder)
    if faults and not present:
        return faults
    data = _read(folder, layout.MANIFEST, present, faults)
    line = _read(folder, layout.MANIFEST_DIGEST, present, faults)
    if data is not None and line is not None and line != digest_line(data):
        faults.append(_digest_fault(data, line))
    if data is None:
        return _sorted(faults)
    try:
        manifest = decode_manifest(data)
    except BundleError as error:
        reason = f"{error.what}{': ' + error.got if error.got else ''}; no other file can be checked"
        faults.append(Fault(file=layout.MANIFEST, kind=fault.CORRUPT, text=reason))
        return _sorted(faults)
    faults += _subject_faults(manifest)
    faults += _file_faults(folder, manifest.digests(), present)
    return _sorted(faults)


def _sorted(faults: list[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda each: (each.file, each.kind, each.text))


def _walk(folder: Path) -> tuple[dict[str, int], list[Fault]]:
    """(mode by name of everything in the folder, faults): folders without entries count, links are not followed."""
    present: dict[str, int] = {}
    faults: list[Fault] = []
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        try:
            entries = sorted(os.listdir(folder / inner))
        except OSError as error:
            kind = fault.MISSING if not inner and isinstance(error, FileNotFoundError) else fault.UNREADABLE
            text = f"the folder cannot be listed: {error.strerror}"
            faults.append(Fault(file=layout.shown_name(inner) or ".", kind=kind, text=text))
            continue
        for entry in entries:
            name = f"{inner}/{entry}" if inner else entry
            try:
                present[name] = os.lstat(folder / name).st_mode
            except OSError as error:
                faults.append(
                    Fault(file=layout.shown_name(name), kind=fault.UNREADABLE, text=error.strerror or "no status")
                )
                continue
            if stat.S_ISDIR(present[name]):
                waiting.append(name)
    return present, faults


def _read(folder: Path, name: str, present: dict[str, int], faults: list[Fault]) -> bytes | None:
    """The bytes of the manifest or of its digest; None, and a fault, where they cannot be had."""
    if name not in present:
        faults.append(Fault(file=name, kind=fault.MISSING, text="every bundle has this file"))
        return None
    try:
        with open_regular(folder / name) as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except NotRegular as error:
        faults.append(Fault(file=name, kind=fault.NOT_A_FILE, text=f"{error} where a file should be"))
        return None
    except OSError as error:
        faults.append(Fault(file=name, kind=fault.UNREADABLE, text=error.strerror or str(error)))
        return None
    if len(data) > LARGEST_BYTES:
        faults.append(Fault(file=name, kind=fault.CORRUPT, text=f"larger than {LARGEST_BYTES} bytes"))
        return None
    return data


def _digest_fault(data: bytes, line: bytes) -> Fault:
    """Which of the two was changed: another manifest changes nearly every digit of its digest, a slip only a few."""
    wanted = digest_line(data)
    same = sum(left == right for left, right in zip(line, wanted, strict=False))
    if same > len(wanted) // 2 + len(wanted) // 4:
        text = "differs in a few characters from the digest of manifest.json"
        return Fault(file=layout.MANIFEST_DIGEST, kind=fault.CHANGED, text=text)
    if len(line) != len(wanted) or not line.endswith(wanted[64:]) or set(line[:64].decode("latin-1")) - _HEX:
        text = "is no line of a SHA-256 digest of manifest.json"
        return Fault(file=layout.MANIFEST_DIGEST, kind=fault.CHANGED, text=text)
    text = "its digest is not the one in manifest.sha256: one of the two files was changed"
    return Fault(file=layout.MANIFEST, kind=fault.CHANGED, text=text)


def _subject_faults(manifest: Manifest) -> Iterator[Fault]:
    """What is wrong with the list of files itself."""
    names = [each.name for each in manifest.subject]
    if names != sorted(names):
        yield Fault(file=layout.MANIFEST, kind=fault.CORRUPT, text="subjects are not sorted by name")
    for name in layout.REQUIRED:
        if name not in names:
            yield Fault(file=layout.MANIFEST, kind=fault.MISSING, text=f"names no {name}, which every bundle has")
    seen: set[str] = set()
    for each in manifest.subject:
        if each.name in seen:
            yield Fault(file=layout.MANIFEST, kind=fault.AMBIGUOUS, text=f"names {each.name!r} twice")
        seen.add(each.name)
        if not layout.is_plain_name(each.name) or each.name in _OUTSIDE:
            yield Fault(file=layout.MANIFEST, kind=fault.CORRUPT, text=f"names {each.name!r}, no place in a bundle")
        digest = each.digest.get("sha256", "")
        if set(each.digest) != {"sha256"} or len(digest) != 64 or set(digest) - _HEX:
            text = f"has no SHA-256 of 64 digits for {each.name!r}"
            yield Fault(file=layout.MANIFEST, kind=fault.CORRUPT, text=text)


def _file_faults(folder: Path, digests: dict[str, str], present: dict[str, int]) -> Iterator[Fault]:
    """Every file against the digest that the manifest has for it."""
    for name, digest in digests.items():
        if layout.is_plain_name(name) and name not in _OUTSIDE:
            found = _one_file(folder, name, digest, present)
            if found is not None:
                yield found
    folders = {name.rsplit("/", depth)[0] for name in digests for depth in range(1, name.count("/") + 1)}
    for name, mode in present.items():
        if name in digests or name in _OUTSIDE or (stat.S_ISDIR(mode) and name in folders):
            continue
        yield Fault(
            file=layout.shown_name(name), kind=fault.EXTRA, text=f"{kind_of(mode)} that the manifest does not name"
        )


def _one_file(folder: Path, name: str, digest: str, present: dict[str, int]) -> Fault | None:
    if name not in present:
        return Fault(file=name, kind=fault.MISSING, text="named by the manifest and not there")
    try:
        with open_regular(folder / name) as stream:
            found = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    except NotRegular as error:
        return Fault(file=name, kind=fault.NOT_A_FILE, text=f"{error} where a file should be")
    except OSError as error:
        return Fault(file=name, kind=fault.UNREADABLE, text=error.strerror or str(error))
    if found != digest:
        return Fault(file=name, kind=fault.CHANGED, text="its bytes are not those that the manifest names")
    return None
