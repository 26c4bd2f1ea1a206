/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread that destroys queue pairs, so that the main thread need not wait for the kernel.
 *
 * Destroying one ends when nothing refers to it any more. On Soft-RoCE that includes packets that a
 * NIC's driver has sent but not yet taken back, and some drivers (virtio_net) take them back only
 * when they send again: on a quiet link the kernel waits for up to 50 s (rxe's __rxe_cleanup).
 */
#ifndef VERBS_QP_DESTROYER_H
#define VERBS_QP_DESTROYER_H

#include <stdbool.h>

struct verbs_qp;
struct qp_destroyer;

/* NULL: there can be no thread; then whoever hands over a pair waits for its end. */
struct qp_destroyer *qp_destroyer_start(void);
/* Takes over a pair that is at rest and has given back its memory; main thread only. */
void qp_destroyer_add(struct qp_destroyer *destroyer, struct verbs_qp *qp);
/* Waits until all are destroyed, but not for long. False: some are not, and so the port's device,
 * protection domain and channels must be left to the end of the process. */
bool qp_destroyer_stop(struct qp_destroyer *destroyer);

#endif
