/* SPDX-License-Identifier: BSD-3-Clause */
#include "registered_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096u
#define HUGE_BYTES (2u << 20)
#define SLAB_BYTES (8u << 20) /* min */

struct memory_slab {
    struct memory_slab *next;
    uint8_t *at;
    size_t bytes;
    size_t used;     /* from the beginning; what is given back is free when all is */
    unsigned ranges; /* taken and not given back */
    struct ibv_mr *region;
};

void registered_memory_init(struct registered_memory *memory, struct ibv_pd *pd, const char *label)
{
    size_t pages = (size_t)sysconf(_SC_PHYS_PAGES);

    *memory = (struct registered_memory){
        .pd = pd, .label = label, .max = pages * (size_t)sysconf(_SC_PAGESIZE) / 4};
}

static void free_slab(struct registered_memory *memory, struct memory_slab *slab)
{
    if (slab->region != NULL)
        ibv_dereg_mr(slab->region);
    if (slab->at != NULL)
        munmap(slab->at, slab->bytes);
    memory->bytes -= slab->bytes;
    free(slab);
}

static void free_slabs(struct registered_memory *memory, bool only_empty)
{
    struct memory_slab **link = &memory->slabs;

    while (*link != NULL) {
        struct memory_slab *slab = *link;

        if (only_empty && slab->ranges > 0) {
            link = &slab->next;
            continue;
        }
        *link = slab->next;
        free_slab(memory, slab);
    }
}

void registered_memory_close(struct registered_memory *memory)
{
    free_slabs(memory, false);
}

static void *map(size_t bytes, bool *huge)
{
    const int protection = PROT_READ | PROT_WRITE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *at = mmap(NULL, bytes, protection, flags | MAP_HUGETLB | MAP_POPULATE, -1, 0);

    *huge = at != MAP_FAILED;
    if (!*huge) {
        at = mmap(NULL, bytes, protection, flags, -1, 0);
        if (at != MAP_FAILED)
            madvise(at, bytes, MADV_HUGEPAGE);
    }
    return at != MAP_FAILED ? at : NULL;
}

int registered_memory_error(const char *label, size_t bytes, int code, struct err *err)
{
    struct rlimit limit = {0};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if ((code == ENOMEM || code == EPERM) && limit.rlim_cur != RLIM_INFINITY)
        return err_set(err, -EPERM,
                       "%s: can't register %zu KiB of memory: this user may lock %llu KiB; raise "
                       "the limit (`ulimit -l unlimited`, memlock in limits.conf, or LimitMEMLOCK "
                       "of the service)",
                       label, bytes >> 10, (unsigned long long)limit.rlim_cur >> 10);
    return err_set(err, -code, "%s: can't register %zu KiB of memory: %s", label, bytes >> 10,
                   strerror(code));
}

static int add_slab(struct registered_memory *memory, size_t bytes, struct memory_slab **added,
                    struct err *err)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct memory_slab *slab;

    bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    if (memory->bytes + bytes > memory->max)
        free_slabs(memory, true);
    if (memory->bytes + bytes > memory->max)
        return err_set(err, -ENOMEM,
                       "%s: %zu MiB of buffers are wanted besides the %zu MiB in use; %zu MiB, a "
                       "quarter of this machine's memory, are the most: use smaller messages, "
                       "less depth or fewer queue_pairs",
                       memory->label, bytes >> 20, memory->bytes >> 20, memory->max >> 20);
    slab = calloc(1, sizeof *slab);
    if (slab == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", memory->label);
    slab->bytes = bytes;
    memory->bytes += bytes;
    slab->at = map(bytes, &memory->huge);
    if (slab->at != NULL)
        slab->region = ibv_reg_mr(memory->pd, slab->at, bytes, (unsigned)access);
    if (slab->region == NULL) {
        int code = errno;

        free_slab(memory, slab);
        code = registered_memory_error(memory->label, bytes, code, err);
        return code < 0 ? code : -ENOMEM;
    }
    slab->next = memory->slabs;
    memory->slabs = slab;
    *added = slab;
    return 0;
}

/* The one with the least room that is enough, so that the next phase finds its slabs again. */
static struct memory_slab *slab_with_room(const struct registered_memory *memory, size_t bytes)
{
    struct memory_slab *best = NULL;

    for (struct memory_slab *slab = memory->slabs; slab != NULL; slab = slab->next)
        if (slab->bytes - slab->used >= bytes &&
            (best == NULL || slab->bytes - slab->used < best->bytes - best->used))
            best = slab;
    return best;
}

int registered_memory_take(struct registered_memory *memory, size_t bytes,
                           struct memory_range *range, struct err *err)
{
    struct memory_slab *slab;
    int rc = 0;

    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    slab = slab_with_room(memory, bytes);
    if (slab == NULL)
        rc = add_slab(memory, bytes > SLAB_BYTES ? bytes : SLAB_BYTES, &slab, err);
    if (slab == NULL)
        return rc;
    *range = (struct memory_range){.at = slab->at + slab->used,
                                   .bytes = bytes,
                                   .slab = slab,
                                   .lkey = slab->region->lkey,
                                   .rkey = slab->region->rkey};
    slab->used += bytes;
    slab->ranges++;
    return 0;
}

void registered_memory_give(struct memory_range *range)
{
    struct memory_slab *slab = range->slab;

    if (range->at == NULL)
        return;
    slab->ranges--;
    if (slab->ranges == 0)
        slab->used = 0;
    *range = (struct memory_range){0};
}
