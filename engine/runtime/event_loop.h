/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The main thread's loop: documents, control datagrams, workers' events and signals;
 * barriers and failures of the node.
 */
#ifndef ENGINE_EVENT_LOOP_H
#define ENGINE_EVENT_LOOP_H

#include "node.h"

/**
 * @brief Take one turn of the node's loop: wait until something happens or a time, then answer
 * control datagrams, read documents, and look for reasons to end.
 *
 * @param node This node.
 * @param until_ns Time of CLOCK_MONOTONIC, ns.
 * @return 0; -ECANCELED: the run must end (node->end says why; traffic has been told to stop).
 */
int node_turn(struct node *node, int64_t until_ns);
/**
 * @brief Take one turn as node_turn() does, which also ends when a descriptor is readable.
 *
 * @param node This node.
 * @param until_ns Time of CLOCK_MONOTONIC, ns.
 * @param fd Descriptor that ends the turn when it is readable; -1: none.
 * @return As node_turn().
 */
int node_poll(struct node *node, int64_t until_ns, int fd);

/**
 * @brief Wait for the next document of a kind while the node's loop goes on; heartbeats are
 * consumed.
 *
 * @param node This node.
 * @param document Takes the document.
 * @return 0 with the document, which the caller frees; -ECANCELED as node_turn(), also for
 *        NODE_QUIT.
 */
int node_await_document(struct node *node, struct document **document);

/**
 * @brief Enter the next barrier with these values and wait.
 *
 * @param node This node.
 * @param values Contribution of this node; takes the reduction.
 * @return 0, and `values` holds the reduction; -ECANCELED: somebody is missing or gave up
 *        (reported).
 */
int node_barrier(struct node *node, struct barrier_values *values);

/**
 * @brief Claim precedence for this thread on shared cores, or give it back: others wait for it in
 * barriers.
 *
 * Where the nodes outnumber the cores of one machine it is real-time; it then looks for datagrams
 * itself no longer than elsewhere (spin_ns), for it keeps the core from workers meanwhile.
 *
 * @param node This node.
 * @param claims Claim precedence; false: give it back.
 */
void set_thread_priority(struct node *node, bool claims);

/**
 * @brief End the run because this node can't go on, and tell the others at once.
 *
 * @param node This node; its err has the sentence, of which the first stays.
 * @param code Negative errno, which gives the exit status.
 * @return -ECANCELED.
 */
int node_fail(struct node *node, int code);

/**
 * @brief Return a node's name.
 *
 * @param node This node.
 * @param index Index of the node.
 * @return Name; the job's.
 */
const char *node_name_of(const struct node *node, uint32_t index);

#endif
