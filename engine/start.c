/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts the engine of a folder that brings its own loader and libraries, by the script `start`
 * beside this program (scripts/python/switchbench/hosts/push.py, which also lists the files).
 *
 * File capabilities, if any, are set on this program: on the loader every program could use them,
 * on a script the kernel ignores them, and on the engine the host's loader would run it. This
 * program passes them on as ambient capabilities (capabilities(7)). `push` gives them only where
 * the folder and all above it are root's.
 */
#include "environment.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SCRIPT "start"
#define FAILED 127 /* as a shell that can't find a program */

static int fail(const char *what)
{
    fprintf(stderr, "switchbench-node: %s: %s\n", what, strerror(errno));
    return FAILED;
}

/* Write the path of the script beside this program. */
static int find_script(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - sizeof SCRIPT);

    if (length < 0)
        return -1;
    path[length] = '\0';
    memcpy(strrchr(path, '/') + 1, SCRIPT, sizeof SCRIPT);
    return 0;
}

static int hand_on_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) != 0)
        return -1;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].inheritable |= data[i].permitted;
    if (syscall(SYS_capset, &header, data) != 0)
        return -1;
    for (int i = 0; i <= CAP_LAST_CAP; i++)
        if ((data[CAP_TO_INDEX(i)].permitted & CAP_TO_MASK(i)) != 0 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) != 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    static char shell[] = "/bin/sh";
    char script[PATH_MAX];
    char **words;

    if (find_script(script, sizeof script) != 0)
        return fail("can't find the folder of the engine");
    if (getauxval(AT_SECURE) != 0 && (environment_clean() != 0 || hand_on_capabilities() != 0))
        return fail("can't hand on the capabilities");
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    words = calloc((size_t)argc + 2, sizeof *words);
    if (words == NULL)
        return fail("no memory for its arguments");
    words[0] = shell;
    words[1] = script;
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
    execv(shell, words);
    free(words);
    return fail("can't start /bin/sh");
}
