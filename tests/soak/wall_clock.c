/* A wall clock that is off by as many seconds as the file WALL_CLOCK_FILE says, preloaded into one process.

   The file holds one C long. Whoever writes it sets the clock of a process that runs. Monotonic and boot time stay as
   they are, and so do waits: Python waits by the monotonic clock.
*/
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long right = 0;
static const volatile long *shift = &right;

__attribute__((constructor)) static void map_shift(void) {
    const char *path = getenv("WALL_CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        shift = mapped;
    close(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise))
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME_COARSE, &now))
        return -1;
    if (kept)
        *kept = now.tv_sec;
    return now.tv_sec;
}
