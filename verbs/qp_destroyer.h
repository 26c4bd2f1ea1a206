/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread that destroys queue pairs, so that the main thread does not wait for the kernel.
 *
 * The kernel's call returns when nothing refers to the queue pair any more. On Soft-RoCE that
 * includes packets that a NIC's driver has sent but not yet freed, and some drivers (virtio_net)
 * free them only when they send again: on a quiet link the call takes up to 50 s (rxe's
 * __rxe_cleanup).
 */
#ifndef VERBS_QP_DESTROYER_H
#define VERBS_QP_DESTROYER_H

#include <stdbool.h>

/* A member of what is to be destroyed. */
struct doomed {
    struct doomed *next;
    void (*destroy)(struct doomed *doomed);
};

/* NULL: there can be no thread; then the main thread waits. */
struct qp_destroyer *qp_destroyer_start(void);
/* Main thread only. */
void qp_destroyer_add(struct qp_destroyer *destroyer, struct doomed *doomed);
/* Waits up to 2 s until all are destroyed. False: some are not, and so the port's device,
 * protection domain and channels must be left to the end of the process. */
bool qp_destroyer_stop(struct qp_destroyer *destroyer);

#endif
