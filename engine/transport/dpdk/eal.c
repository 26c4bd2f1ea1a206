/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal.h"

#include "log.h"
#include "sysfs.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MIB (1024ull * 1024)
#define HUGE_MIN (256 * MIB)   /* fewer free hugepages are left to other programs */
#define PLAIN_MIN (256 * MIB)  /* address space without hugepages, which ports use as needed */
#define PLAIN_MAX (4096 * MIB) /* ... */
#define ARGUMENTS_MAX 16

/* Environment variable with the folder of an engine that was copied with its own libraries; set by
 * the program that starts the engine (hosts/push.py). */
#define BUNDLE_VARIABLE "SWITCHBENCH_BUNDLE"

static bool started;
static bool huge;
static char first_line[256];
static pthread_key_t thread_key;
static atomic_flag thread_without_number = ATOMIC_FLAG_INIT; /* whether the message was logged */

/* Store the first line of the EAL's log, which has the cause of a failure; the following lines
 * report consequences. */
static ssize_t keep_line(void *cookie, const char *text, size_t size)
{
    size_t length = size;

    (void)cookie;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    if (length > 0 && first_line[0] == '\0')
        snprintf(first_line, sizeof first_line, "%.*s", (int)length, text);
    return (ssize_t)size;
}

void eal_log_clear(void)
{
    first_line[0] = '\0';
}

const char *eal_log_first(void)
{
    return first_line;
}

const char *eal_memory_remedy(void)
{
    return huge ? "reserve more hugepages (vm.nr_hugepages) or none at all"
                : "open fewer ports in one process";
}

/* Start the EAL without PCI devices; each is added when a port needs it. An allow list with one
 * impossible device keeps the EAL from taking all devices at the start, while --no-pci would forbid
 * them for ever. */
static int init(const char *node, int core)
{
    char words[512], memory[64] = "\n--in-memory", *list[ARGUMENTS_MAX], *rest = words, answer[2];
    struct sysinfo info = {.mem_unit = 0};
    uint64_t quarter = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit / 4 : 0;
    bool physical;
    int count = 0;

    if (!huge)
        snprintf(memory, sizeof memory, "\n--no-huge\n--no-shconf\n-m\n%u",
                 (unsigned)(RTE_MAX(RTE_MIN(quarter, PLAIN_MAX), PLAIN_MIN) / MIB));
    /* Devices without an IOMMU need physical addresses; all others, especially AF_XDP's contiguous
     * memory, work better with virtual ones. */
    sysfs_line(answer, sizeof answer, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    physical = answer[0] == 'Y' || sysfs_exists("/sys/module/uio");
    snprintf(words, sizeof words,
             "switchbench\n--lcores=0@%d\n--file-prefix=switchbench-%.20s-%d\n--no-telemetry\n"
             "--log-level=error\n--allow=ffff:ff:1f.7%s%s",
             core, node, (int)getpid(), memory, !huge || !physical ? "\n--iova-mode=va" : "");
    while (rest != NULL && count < ARGUMENTS_MAX)
        list[count++] = strsep(&rest, "\n");
    return rte_eal_init(count, list);
}

/* Load the drivers that came with the engine, which register themselves. The EAL's option -d would
 * check the permissions of all folders above them, up to the root. */
static int load_drivers(struct err *err)
{
    const char *bundle = secure_getenv(BUNDLE_VARIABLE);
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 1];
    struct dirent *entry;
    DIR *drivers;
    int rc = 0;

    if (bundle == NULL)
        return 0; /* the EAL loads the host's drivers */
    snprintf(folder, sizeof folder, "%s/lib/dpdk", bundle);
    drivers = opendir(folder);
    if (drivers == NULL)
        return err_set(err, -errno, "DPDK's drivers are not in %s: %s", folder, strerror(errno));
    while (rc == 0 && (entry = readdir(drivers)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && dlopen(path, RTLD_NOW | RTLD_GLOBAL) == NULL)
            rc = err_set(err, -ENOEXEC, "a driver of DPDK can't be loaded: %s", dlerror());
    }
    closedir(drivers);
    return rc;
}

/* Remove the folder that the EAL made, and DPDK's common folder above it. The EAL makes both even
 * if it shares nothing. Folders that other programs use are not empty, and remain. */
static void remove_folder(void)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", rte_eal_get_runtime_dir());
    if (rmdir(path) == 0)
        (void)rmdir(dirname(path));
}

static void thread_ends(void *registered)
{
    (void)registered;
    rte_thread_unregister();
}

static void end(void)
{
    remove_folder();
    rte_eal_cleanup();
}

int eal_start(const char *node, struct err *err)
{
    static const char free_pages[] = "/sys/kernel/mm/hugepages/hugepages-%ukB/free_hugepages";
    FILE *stream =
        started ? NULL : fopencookie(NULL, "w", (cookie_io_functions_t){.write = keep_line});
    sigset_t all, before;
    cpu_set_t cores;
    int rc;

    if (started)
        return 0;
    huge = (uint64_t)sysfs_number(0, free_pages, 2048) * 2 * MIB +
               (uint64_t)sysfs_number(0, free_pages, 1048576) * 1024 * MIB >=
           HUGE_MIN;
    if (stream == NULL || setvbuf(stream, NULL, _IOLBF, 512) != 0 ||
        rte_openlog_stream(stream) != 0 || pthread_key_create(&thread_key, thread_ends) != 0)
        return err_set(err, -ENOMEM, "no memory for DPDK's log");
    rc = load_drivers(err);
    if (rc < 0)
        return rc;
    /* The EAL pins its first thread and lets its own threads inherit the signal mask. */
    pthread_getaffinity_np(pthread_self(), sizeof cores, &cores);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = init(node != NULL ? node : "node", RTE_MAX(sched_getcpu(), 0));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
    if (rc < 0)
        return err_set(err, rte_errno > 0 ? -rte_errno : -EIO, "DPDK does not start: %s (%s)",
                       rte_strerror(rte_errno), first_line);
    started = true;
    remove_folder();
    atexit(end);
    return 0;
}

/* Keep libbpf or libxdp, which DPDK's AF_XDP driver loads, from printing messages, which are
 * irrelevant here. */
static void silence(const char *library, const char *function)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *(*set_print)(void *) = NULL;

    if (handle == NULL)
        return;
    *(void **)&set_print = dlsym(handle, function);
    if (set_print != NULL)
        (void)set_print(NULL);
    dlclose(handle);
}

void eal_silence_xdp(void)
{
    silence("libbpf.so.1", "libbpf_set_print");
    silence("libxdp.so.1", "libxdp_set_print");
}

void eal_thread(void)
{
    if (rte_lcore_id() != LCORE_ID_ANY)
        return;
    if (rte_thread_register() == 0)
        pthread_setspecific(thread_key, &started);
    else if (!atomic_flag_test_and_set(&thread_without_number))
        log_warning("DPDK supports %u threads at most, and this process has more: the others are "
                    "slower, because they have no cache of buffers; give the node fewer cores",
                    RTE_MAX_LCORE);
}
