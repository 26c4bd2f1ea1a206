/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control endpoints of one run on loopback, in one thread, pumped in turn. Every datagram goes
 * through a relay (the nodes know only its address), which records, loses or forwards it, and
 * through which a test can send whatever it likes.
 */
#ifndef TESTS_UNIT_CONTROL_BED_H
#define TESTS_UNIT_CONTROL_BED_H

#include "datagram.h"
#include "endpoint.h"

#define BED_NODES_MAX 8
#define BED_RECORDS_MAX 4096

struct bed_record {
    uint16_t size;
    uint8_t bytes[DATAGRAM_MAX];
};

struct bed {
    uint32_t count;
    int family;
    struct control *nodes[BED_NODES_MAX]; /* NULL: closed */
    struct sockaddr_storage addresses[BED_NODES_MAX];
    struct sockaddr_storage relay_address;
    int relay;
    bool recording;
    double loss;
    uint64_t random;
    struct bed_record *records;
    uint32_t record_count;
};

/* Opens `count` nodes; false: the family is not to be had here. */
bool bed_open(struct bed *bed, uint32_t count, int family, int64_t timeout_ns);
void bed_close(struct bed *bed);
/* Joins one node, or all of them, under this run id and first byte of the key. */
void bed_join(struct bed *bed, uint32_t node, const char *run_id, uint8_t key);
void bed_join_all(struct bed *bed);
/* Ends one node's process, as it were: nothing answers any more. */
void bed_kill(struct bed *bed, uint32_t node);

/* Waits a little for the sockets, relays, lets every node work. */
void bed_pump(struct bed *bed);
void bed_pump_for(struct bed *bed, int64_t duration_ns);
/* All enter; then pumps until each has passed or failed. `mine` NULL: nothing to say. */
void bed_barrier(struct bed *bed, const struct barrier_values *mine);
enum barrier_state bed_state(struct bed *bed, uint32_t node);
/* To a node, as if from the network. */
void bed_inject(struct bed *bed, uint32_t node, const uint8_t *bytes, size_t size);

#endif
