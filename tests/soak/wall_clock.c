/* A wall clock that is off by WALL_CLOCK_SHIFT seconds, preloaded into one process.

   Monotonic and boot time stay as they are, and so do waits: Python waits by the monotonic clock.

       cc -shared -fPIC -O1 -o wall_clock.so wall_clock.c
       WALL_CLOCK_SHIFT=3600 LD_PRELOAD=./wall_clock.so python3 -c 'import time; print(time.time())'
*/
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift;

__attribute__((constructor)) static void read_shift(void) {
    const char *text = getenv("WALL_CLOCK_SHIFT");
    shift = text ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift;
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
