/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which calls of rdma_cm a port expects: one for each token that an end of its own has published,
 * as long as that end lives. A call with any other token is a stranger's and takes no room. No I/O:
 * an `id` is opaque here. Main thread only.
 */
#ifndef VERBS_CALLERS_H
#define VERBS_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

struct verbs_caller {
    struct verbs_caller *next;
    const void *end; /* whose token it is */
    uint64_t token;
    void *id;        /* of the call; NULL: it has not come */
    uint32_t number; /* the caller's queue pair */
};

struct verbs_callers {
    struct verbs_caller *first;
};

/* `end` expects a call with this token; it must not expect one already. 0 or -ENOMEM. */
int verbs_callers_expect(struct verbs_callers *callers, const void *end, uint64_t token);
/* A call has come. False: nobody expects it, or another one has come with its token. */
bool verbs_callers_came(struct verbs_callers *callers, uint64_t token, uint32_t number, void *id);
/* The call that has come for `end`, with its queue pair's number, and is no longer expected; NULL:
 * none has come yet. */
void *verbs_callers_take(struct verbs_callers *callers, const void *end, uint32_t *number);
/* `end` expects no call any more (it may never have). Returns the id of one that has come, or NULL.
 */
void *verbs_callers_forget(struct verbs_callers *callers, const void *end);

#endif
