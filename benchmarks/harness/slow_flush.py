"""Slower flushes for all processes: a library, compiled on the fly, that delays each flush of a process.

It precedes fsync, fdatasync and writes to files opened with O_DSYNC or O_SYNC (LMDB's second flush of a
commit is such a write): after the real call the calling thread sleeps. So it slows Redis, PostgreSQL and the embedded
store where a slow disk would, once for each flush that they ask for.
"""

import shutil
import subprocess
from pathlib import Path

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void linger(void) {
    const char *told = getenv("PQ_BENCH_FLUSH_US");
    long us = told ? atol(told) : 0;
    struct timespec rest = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&rest, 0);
}
static int flushes(int fd) { return fcntl(fd, F_GETFL) & (O_DSYNC | O_SYNC); }

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
int fsync(int fd) { NEXT(fsync); int done = next(fd); linger(); return done; }
int fdatasync(int fd) { NEXT(fdatasync); int done = next(fd); linger(); return done; }
#define WRITE(name, args, call) \
    ssize_t name args { NEXT(name); ssize_t done = next call; if (flushes(fd)) linger(); return done; }
WRITE(write, (int fd, const void *data, size_t size), (fd, data, size))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
WRITE(pwritev, (int fd, const struct iovec *data, int count, off_t at), (fd, data, count, at))
WRITE(pwritev64, (int fd, const struct iovec *data, int count, off64_t at), (fd, data, count, at))
"""


class NoCompiler(Exception):
    """Flushes cannot be slowed here; the message says why."""


def slowed(folder: Path, milliseconds: float) -> dict[str, str]:
    """Return the environment in which every flush of a program takes so much longer."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("slowing flushes needs a C compiler; on Debian: apt-get install gcc libc6-dev")
    source, library = folder / "slow_flush.c", folder / "slow_flush.so"
    source.write_text(_SOURCE, encoding="ascii")
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], capture_output=True, text=True
    )
    if done.returncode:
        raise NoCompiler(f"the library that slows flushes does not compile here: {done.stderr.strip()[-500:]}")
    library.chmod(0o755)
    return {"LD_PRELOAD": str(library), "PQ_BENCH_FLUSH_US": str(round(milliseconds * 1000))}
