"""The path of a store, which is UTF-8 text, and the file system under it.

One of the network is refused, as machines share no memory map and no locks.
"""

import os
from pathlib import Path

from queues.kv.errors import BadStoreURL, StoreUnavailable

#: Where Linux tells what is mounted: "ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS… - KIND SOURCE OPTIONS" a line.
MOUNTS = Path("/proc/self/mountinfo")
_OF_THE_NETWORK = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"}
)


def refuse_network(folder: Path) -> None:
    """Raise `StoreUnavailable` for a folder on a file system of the network. Raises OSError."""
    kind = _kind_of(folder)
    if kind in _OF_THE_NETWORK:
        raise StoreUnavailable(
            "The store {path} would be on a network file system ({kind}), where two machines that use it damage it. "
            "Use a disk of this machine, or a FoundationDB cluster. Nothing was changed.",
            path=str(folder),
            kind=kind,
        )


def utf8_path(path: str) -> str:
    """Return a path as it is; raise `BadStoreURL` for one that the engine cannot open."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise BadStoreURL(
            "{path} is not UTF-8, as the path of a store or a backup has to be. Nothing was changed.", path=repr(path)
        ) from None
    return path


def _kind_of(folder: Path) -> str | None:
    """Return the kind of file system that holds a folder; None where that is not told."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:  # another system than Linux
        return None
    for mount in mounts:
        place, _, what = mount.partition(" - ")
        if place.split(" ", 3)[2:3] == [number]:
            return what.split(" ", 1)[0]
    return None
