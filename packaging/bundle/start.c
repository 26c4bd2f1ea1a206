/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts a program of a folder that brings everything with it, the engine above all:
 *
 *   switchbench-node          this program, by the name of what it starts
 *   libexec/switchbench-node  the engine
 *   lib/loader, lib/...       the C library's loader, and all libraries
 *   lib/dpdk/, lib/verbs/     what DPDK and libibverbs load while they run
 *   lib/bpf/                  what libxdp gives to the kernel
 *
 * File capabilities, if any, stand on this program: on the loader they would be everybody's, and on
 * the engine the kernel would look at the loader's. So it hands them on as ambient capabilities
 * (capabilities(7)), which the loader does not take for secure execution. Whatever could make it
 * run something else then is checked first.
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOADER "lib/loader"
#define LIBRARIES "lib"
#define DRIVERS "lib/dpdk"
#define PROVIDERS "lib/verbs"
#define XDP_PROGRAMS "lib/bpf"

#define FOLDER_MAX (PATH_MAX - 2 * NAME_MAX) /* what is named in it fits into a path */

#define FAILED 127 /* as a shell that can't find a program */

static char program[NAME_MAX + 1];                       /* "switchbench-node" */
static char started[sizeof "libexec/" + sizeof program]; /* "libexec/switchbench-node" */

static int fail(const char *what, const char *path, int code)
{
    fprintf(stderr, "%s: %s %s: %s\n", program, what, path, strerror(code));
    return FAILED;
}

/* The folder that this program is in, and its name there, whatever it was called by. */
static int find_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    char *slash;

    if (length < 0)
        return -errno;
    folder[length] = '\0';
    slash = strrchr(folder, '/');
    if (slash == NULL)
        return -ENOTDIR;
    *slash = '\0';
    snprintf(program, sizeof program, "%s", slash + 1);
    snprintf(started, sizeof started, "libexec/%s", program);
    return 0;
}

/* --- capabilities --- */

/* Who may write there decides what runs with the capabilities, and so does who may rename a folder
 * above it: as sshd does with keys (StrictModes), but root's alone. The caller's own will not do:
 * the capabilities would be the caller's for anything. In a folder like /tmp nobody can rename what
 * is root's. */
static int check_owner(const char *path, const struct stat *status, bool above)
{
    bool others = (status->st_mode & (S_IWGRP | S_IWOTH)) != 0;

    if (status->st_uid == 0 && (!others || (above && (status->st_mode & S_ISVTX) != 0)))
        return 0;
    fprintf(stderr, "%s: %s can be written by others than root: it is not run with capabilities\n",
            program, path);
    return FAILED;
}

/* A link is as good as where it leads: to a place of the folder, which is looked at by itself. */
static int check_link(const char *path)
{
    char to[PATH_MAX];
    ssize_t length = readlink(path, to, sizeof to - 1);

    if (length < 0)
        return fail("can't look at", path, errno);
    to[length] = '\0';
    if (to[0] != '/' && strstr(to, "..") == NULL)
        return 0;
    fprintf(stderr, "%s: %s leads out of the folder: it is not run with capabilities\n", program,
            path);
    return FAILED;
}

static int check_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    if (kind == FTW_NS || kind == FTW_DNR)
        return fail("can't look at", path, EACCES);
    return kind == FTW_SL ? check_link(path) : check_owner(path, status, false);
}

static int check_above(const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    char *slash;
    int rc = 0;

    snprintf(path, sizeof path, "%s", folder);
    while (rc == 0 && (slash = strrchr(path, '/')) != NULL) {
        *slash = '\0';
        if (stat(slash == path ? "/" : path, &status) != 0)
            return fail("can't look at", path, errno);
        rc = check_owner(slash == path ? "/" : path, &status, true);
    }
    return rc;
}

/* All that is in it: the loader looks for libraries in further folders, too (glibc-hwcaps). */
static int check_owners(const char *folder)
{
    enum { OPEN_FOLDERS = 8 };
    int rc = check_above(folder);

    if (rc == 0)
        rc = nftw(folder, check_entry, OPEN_FOLDERS, FTW_PHYS);
    return rc < 0 ? fail("can't look at", folder, errno) : rc;
}

/* Libraries heed the environment: with capabilities only what the guard asks for stays. */
static int clean_environment(void)
{
    static char kept[256];
    const char *connection = getenv("SSH_CONNECTION");

    if (connection != NULL)
        snprintf(kept, sizeof kept, "%s", connection);
    clearenv();
    if (connection != NULL && setenv("SSH_CONNECTION", kept, 1) != 0)
        return -errno;
    return setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1) == 0 ? 0 : -errno;
}

static bool has(const struct __user_cap_data_struct *data, int capability)
{
    return data[CAP_TO_INDEX(capability)].permitted & CAP_TO_MASK(capability);
}

static int hand_on_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) != 0)
        return -errno;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].inheritable |= data[i].permitted;
    if (syscall(SYS_capset, &header, data) != 0)
        return -errno;
    for (int i = 0; i <= CAP_LAST_CAP; i++)
        if (has(data, i) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) != 0)
            return -errno;
    return 0;
}

static int take_capabilities(const char *folder)
{
    int rc = check_owners(folder);

    if (rc != 0)
        return rc;
    rc = clean_environment();
    if (rc == 0)
        rc = hand_on_capabilities();
    return rc < 0 ? fail("can't hand on the capabilities of", folder, -rc) : 0;
}

/* --- what libraries look for at places of their own --- */

/* "lib/verbs/libmlx5-rdmav34.so" is named without what follows "libmlx5" (libibverbs,
 * load_driver). */
static int add_provider(char *list, size_t size, const char *folder, const char *name)
{
    const char *end = strstr(name, "-rdmav");
    size_t used = strlen(list);
    int length;

    if (end == NULL)
        return 0;
    length = snprintf(list + used, size - used, "%s%s/%s/%.*s", used > 0 ? ":" : "", folder,
                      PROVIDERS, (int)(end - name), name);
    return length < 0 || (size_t)length >= size - used ? -ENAMETOOLONG : 0;
}

static int name_providers(const char *folder)
{
    static char list[64 * 1024];
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *providers;
    int rc = 0;

    snprintf(path, sizeof path, "%s/%s", folder, PROVIDERS);
    providers = opendir(path);
    if (providers == NULL)
        return 0; /* a build without verbs */
    while (rc == 0 && (entry = readdir(providers)) != NULL)
        rc = add_provider(list, sizeof list, folder, entry->d_name);
    closedir(providers);
    if (rc == 0 && list[0] != '\0' && setenv("IBV_DRIVERS", list, 1) != 0)
        rc = -errno;
    return rc;
}

/* Sets a variable to a folder in ours, where there is one: a caller's own choice wins. */
static int name_folder(const char *variable, const char *folder, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, F_OK) != 0)
        return 0;
    return setenv(variable, path, 0) == 0 ? 0 : -errno;
}

/* The engine takes its drivers from there (engine/transport/dpdk/eal.c). */
static int name_bundle(const char *folder)
{
    char drivers[PATH_MAX];

    snprintf(drivers, sizeof drivers, "%s/%s", folder, DRIVERS);
    if (access(drivers, F_OK) != 0)
        return unsetenv("SWITCHBENCH_BUNDLE");
    return setenv("SWITCHBENCH_BUNDLE", folder, 1) == 0 ? 0 : -errno;
}

/* --- the program --- */

enum { ROOM = PATH_MAX + 320 }; /* a folder's path, and a program's name in it */

static int run_program(const char *folder, int argc, char **argv)
{
    /* The host's cache of libraries is another C library's. */
    static char no_cache[] = "--inhibit-cache", path[] = "--library-path", name[] = "--argv0";
    char loader[ROOM], libraries[ROOM], self[ROOM], file[ROOM];
    char *own[] = {loader, no_cache, path, libraries, name, self, file};
    size_t count = sizeof own / sizeof own[0];
    char **words = calloc(count + (size_t)argc + 1, sizeof *words);

    if (words == NULL)
        return fail("can't start", started, ENOMEM);
    snprintf(loader, sizeof loader, "%s/%s", folder, LOADER);
    snprintf(libraries, sizeof libraries, "%s/%s", folder, LIBRARIES);
    snprintf(self, sizeof self, "%s/%s", folder, program);
    snprintf(file, sizeof file, "%s/%s", folder, started);
    memcpy(words, own, sizeof own);
    for (int i = 1; i < argc; i++)
        words[count + (size_t)i - 1] = argv[i];
    execv(loader, words);
    free(words);
    return fail("can't start", loader, errno);
}

int main(int argc, char **argv)
{
    char folder[FOLDER_MAX];
    int rc = find_folder(folder, sizeof folder);

    if (rc < 0)
        return fail("can't find the folder of", argv[0], -rc);
    if (getauxval(AT_SECURE) != 0) {
        rc = take_capabilities(folder);
        if (rc != 0)
            return rc;
    }
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    rc = name_providers(folder);
    if (rc == 0)
        rc = name_bundle(folder);
    if (rc == 0)
        rc = name_folder("LIBXDP_OBJECT_PATH", folder, XDP_PROGRAMS);
    if (rc < 0)
        return fail("can't prepare", folder, -rc);
    return run_program(folder, argc, argv);
}
