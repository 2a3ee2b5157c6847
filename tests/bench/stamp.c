/* The job of the benchmarks: append "<start time in ns since 1970> <label>\n" to a file.
 *
 * Never waits and never reads. Invariant: one line is one write with O_APPEND, so that processes that run at the same
 * time cannot tear each other's lines.
 * stamp FILE LABEL
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    char line[256];

    clock_gettime(CLOCK_REALTIME, &now);
    if (argc != 3)
        return 64;
    int length = snprintf(line, sizeof line, "%lld%09ld %s\n", (long long)now.tv_sec, now.tv_nsec, argv[2]);
    int file = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (length >= (int)sizeof line || file < 0)
        return 74;
    return write(file, line, length) == length ? 0 : 74;
}
