/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread that destroys queue pairs, so that the main thread need not wait for the kernel.
 *
 * Destroying one ends when nothing refers to it any more. On Soft-RoCE that includes packets that a
 * NIC's driver has sent but not yet taken back, and some drivers (virtio_net) take them back only
 * when they send again: on a quiet link the kernel waits for up to 50 s (rxe's __rxe_cleanup).
 */
#ifndef VERBS_REAPER_H
#define VERBS_REAPER_H

#include <stdbool.h>

struct verbs_pair;
struct verbs_reaper;

/* NULL: there can be no thread; then whoever hands over a pair waits for its end. */
struct verbs_reaper *verbs_reaper_start(void);
/* Takes over a pair that is at rest and has given back its memory; main thread only. */
void verbs_reaper_take(struct verbs_reaper *reaper, struct verbs_pair *pair);
/* Waits until all are destroyed, but not for long. False: some are not, and so the port's device,
 * protection domain and channels must be left to the end of the process. */
bool verbs_reaper_end(struct verbs_reaper *reaper);

#endif
