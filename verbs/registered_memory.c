/* SPDX-License-Identifier: BSD-3-Clause */
#include "registered_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ALIGNMENT 4096u
#define HUGE_BYTES (2u << 20)
#define PIECE_BYTES (8u << 20) /* at least; registering is slow, so not one for each range */

/* What is free of a piece, in the order of addresses, never two that touch. */
struct extent {
    struct extent *next;
    size_t from;
    size_t bytes;
};

struct verbs_piece {
    struct verbs_piece *next;
    uint8_t *at;
    size_t bytes;
    struct ibv_mr *region;
    struct extent *free;
};

void verbs_memory_init(struct verbs_memory *memory, struct ibv_pd *pd, const char *label)
{
    size_t pages = (size_t)sysconf(_SC_PHYS_PAGES);

    *memory = (struct verbs_memory){
        .pd = pd, .label = label, .most = pages * (size_t)sysconf(_SC_PAGESIZE) / 4};
}

static void free_piece(struct verbs_memory *memory, struct verbs_piece *piece)
{
    while (piece->free != NULL) {
        struct extent *extent = piece->free;

        piece->free = extent->next;
        free(extent);
    }
    if (piece->region != NULL)
        ibv_dereg_mr(piece->region);
    if (piece->at != NULL)
        munmap(piece->at, piece->bytes);
    memory->bytes -= piece->bytes;
    free(piece);
}

void verbs_memory_close(struct verbs_memory *memory)
{
    while (memory->pieces != NULL) {
        struct verbs_piece *piece = memory->pieces;

        memory->pieces = piece->next;
        free_piece(memory, piece);
    }
}

static bool is_whole(const struct verbs_piece *piece)
{
    return piece->free != NULL && piece->free->bytes == piece->bytes;
}

static void free_unused(struct verbs_memory *memory)
{
    struct verbs_piece **link = &memory->pieces;

    while (*link != NULL) {
        struct verbs_piece *piece = *link;

        if (!is_whole(piece)) {
            link = &piece->next;
            continue;
        }
        *link = piece->next;
        free_piece(memory, piece);
    }
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

int verbs_refuse_region(const char *label, size_t bytes, int code, struct err *err)
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

static int add_piece(struct verbs_memory *memory, size_t bytes, struct err *err)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct verbs_piece *piece = calloc(1, sizeof *piece);

    if (piece == NULL || (piece->free = calloc(1, sizeof *piece->free)) == NULL) {
        free(piece);
        return err_set(err, -ENOMEM, "%s: out of memory", memory->label);
    }
    piece->bytes = bytes;
    memory->bytes += bytes;
    piece->free->bytes = bytes;
    piece->at = map(bytes, &memory->huge);
    if (piece->at != NULL)
        piece->region = ibv_reg_mr(memory->pd, piece->at, bytes, (unsigned)access);
    if (piece->region == NULL) {
        int code = errno;

        free_piece(memory, piece);
        return verbs_refuse_region(memory->label, bytes, code, err);
    }
    piece->next = memory->pieces;
    memory->pieces = piece;
    return 0;
}

/* The smallest extent that is large enough: so that small ranges do not spoil the gaps that rings
 * have left, which the next phase's rings fill exactly. */
static struct extent **find_extent(struct verbs_memory *memory, size_t bytes,
                                   struct verbs_piece **owner)
{
    struct extent **best = NULL;

    for (struct verbs_piece *piece = memory->pieces; piece != NULL; piece = piece->next)
        for (struct extent **link = &piece->free; *link != NULL; link = &(*link)->next) {
            if ((*link)->bytes < bytes || (best != NULL && (*link)->bytes >= (*best)->bytes))
                continue;
            best = link;
            *owner = piece;
        }
    return best;
}

static bool carve(struct verbs_memory *memory, size_t bytes, struct verbs_range *range)
{
    struct verbs_piece *piece = NULL;
    struct extent **link = find_extent(memory, bytes, &piece);
    struct extent *extent;

    if (link == NULL)
        return false;
    extent = *link;
    *range = (struct verbs_range){.at = piece->at + extent->from,
                                  .bytes = bytes,
                                  .piece = piece,
                                  .lkey = piece->region->lkey,
                                  .rkey = piece->region->rkey};
    extent->from += bytes;
    extent->bytes -= bytes;
    if (extent->bytes == 0) {
        *link = extent->next;
        free(extent);
    }
    return true;
}

int verbs_memory_take(struct verbs_memory *memory, size_t bytes, struct verbs_range *range,
                      struct err *err)
{
    size_t piece_bytes;
    int rc;

    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (carve(memory, bytes, range))
        return 0;
    piece_bytes = bytes > PIECE_BYTES ? bytes : PIECE_BYTES;
    piece_bytes = (piece_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    if (memory->bytes + piece_bytes > memory->most)
        free_unused(memory);
    if (memory->bytes + piece_bytes > memory->most)
        return err_set(err, -ENOMEM,
                       "%s: %zu MiB of buffers are wanted besides the %zu MiB in use; %zu MiB, a "
                       "quarter of this machine's memory, are the most: use smaller messages, "
                       "less depth or fewer queue_pairs",
                       memory->label, piece_bytes >> 20, memory->bytes >> 20, memory->most >> 20);
    rc = add_piece(memory, piece_bytes, err);
    if (rc == 0)
        carve(memory, bytes, range);
    return rc;
}

static void join(struct extent *extent)
{
    struct extent *next = extent->next;

    if (next == NULL || extent->from + extent->bytes != next->from)
        return;
    extent->bytes += next->bytes;
    extent->next = next->next;
    free(next);
}

void verbs_memory_give(struct verbs_range *range)
{
    struct verbs_piece *piece = range->piece;
    struct extent *given;
    struct extent *before = NULL;

    if (range->at == NULL)
        return;
    given = calloc(1, sizeof *given);
    if (given == NULL)
        return; /* lost until the port is closed, which frees whole pieces */
    *given = (struct extent){.from = (size_t)(range->at - piece->at), .bytes = range->bytes};
    for (struct extent *e = piece->free; e != NULL && e->from < given->from; e = e->next)
        before = e;
    given->next = before != NULL ? before->next : piece->free;
    if (before != NULL)
        before->next = given;
    else
        piece->free = given;
    join(given);
    if (before != NULL)
        join(before);
    *range = (struct verbs_range){0};
}
