/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The main thread's loop: documents, control datagrams, workers' events and signals; barriers and
 * failures of the node.
 */
#ifndef ENGINE_EVENT_LOOP_H
#define ENGINE_EVENT_LOOP_H

#include "node.h"

/* One turn of the node's loop: waits until something happens or `until_ns`, then answers control
 * datagrams, reads documents, and looks for reasons to end. 0, or -ECANCELED when the run must
 * end (node->end says why; traffic has been told to stop). */
int node_turn(struct node *node, int64_t until_ns);
/* The same, but it also ends when `fd` is readable (-1: none). */
int node_poll(struct node *node, int64_t until_ns, int fd);

/* Waits for the next document of this kind while the node's loop goes on; heartbeats are eaten.
 * The document is the caller's. -ECANCELED as above; NODE_QUIT counts as an end. */
int node_await_document(struct node *node, struct document **document);

/* Enters the next barrier with these values and waits. On success `values` holds the reduction.
 * -ECANCELED when somebody is missing or gave up (reported). */
int node_barrier(struct node *node, struct barrier_values *values);

/* Others wait for this thread in barriers: on shared cores it claims precedence, or gives it back.
 * Where the nodes outnumber the cores of one machine it is real-time; it then looks for datagrams
 * itself no longer than elsewhere (spin_ns), for it keeps the core from workers meanwhile. */
void set_thread_priority(struct node *node, bool claims);

/* Notes that this node can't go on: the first sentence wins. Returns -ECANCELED. */
int node_fail(struct node *node, int status, const struct err *err);

const char *node_name_of(const struct node *node, uint32_t index);

#endif
