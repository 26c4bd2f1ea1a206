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

/* A member of the end whose token it is. */
struct verbs_caller {
    struct verbs_caller *next;
    uint64_t token;
    void *id;        /* of the call; NULL: it has not come */
    uint32_t number; /* the caller's queue pair */
};

struct verbs_callers {
    struct verbs_caller *first;
};

/* A call with this token is expected; the caller's end must not expect one already. */
void verbs_callers_expect(struct verbs_callers *callers, struct verbs_caller *caller,
                          uint64_t token);
/* A call has come. False: nobody expects it, or another one has come with its token. */
bool verbs_callers_came(struct verbs_callers *callers, uint64_t token, uint32_t number, void *id);
/* It is expected no more (it may never have been). */
void verbs_callers_forget(struct verbs_callers *callers, const struct verbs_caller *caller);

#endif
