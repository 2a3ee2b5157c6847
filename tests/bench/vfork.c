/* The floor under every spawn: vfork, exec and wait in a loop, with nothing around it.
 *
 * vfork COUNT PROGRAM FILE LABEL      prints the nanoseconds that COUNT processes took, one after the other
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec begun, ended;

    if (argc < 4)
        return 64;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int left = atoi(argv[1]); left > 0; left--) {
        int status;
        pid_t child = vfork();
        if (child == 0) {
            execv(argv[2], argv + 2);
            _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 74;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%lld\n", (ended.tv_sec - begun.tv_sec) * 1000000000LL + ended.tv_nsec - begun.tv_nsec);
    return 0;
}
