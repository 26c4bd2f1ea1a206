/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Parser of a node's input documents (doc/developer/node-protocol.md) from lines of JSON to
 * structs.
 *
 * A document is one object with exactly one of the keys of struct document.
 */
#ifndef ENGINE_DOCUMENTS_H
#define ENGINE_DOCUMENTS_H

#include "clock.h"
#include "cpu_placement.h"
#include "err.h"
#include "mapping_reader.h"
#include "pattern.h"
#include "transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOCUMENT_BYTES_MAX (16u << 20)
#define NODE_PROTOCOL 2u
#define DOC_TRANSPORTS_MAX 8 /**< limit of a build, and of one port */

struct doc_port {
    struct port_conf conf;
    char **transports; /**< in the order of first use */
    unsigned transports_count;
};

struct doc_node {
    char *name;
    char *control_netns;   /**< NULL: the process's own */
    char *control_address; /**< "192.0.2.1:7600", "[2001:db8::1]:0"; NULL: any address and port */
    struct doc_port *ports;
    unsigned ports_count;
    uint32_t *cores; /**< cores of the workers; empty: the node chooses */
    unsigned cores_count;
};

struct doc_job {
    uint32_t protocol;
    char *run;
    bool controlled;
    uint32_t heartbeat_timeout_ms;
    uint32_t barrier_timeout_ms;
    enum worker_policy worker;
    struct clock_conf clock; /**< absent: all 0 */
    struct doc_node *nodes;
    unsigned nodes_count;
};

struct doc_peers {
    char **addresses;
    unsigned addresses_count;
    char **sealed_keys; /**< base64 of crypto_box_seal, by node index */
    unsigned sealed_keys_count;
    char *key; /**< by hand: 64 hex digits */
};

struct doc_load { /* exactly one is above 0 */
    double percent;
    double bps;
    double fps;
};

/** @brief Part of a trial that runs on one network; keys that are absent in the document have the
 * trial's values. */
struct doc_part {
    char *network;
    char **ranks; /**< port names in rank order */
    unsigned ranks_count;
    char *transport;
    uint32_t *sizes;
    unsigned sizes_count;
    struct doc_load *load;
    /** @brief Options of the part's transport, read by the transport's option table; NULL: this
     * build lacks the transport. */
    const void *options;
};

struct doc_trial {
    uint32_t id;
    uint32_t repeat;
    char *transport;
    struct doc_part *parts;
    unsigned parts_count;
    struct pattern_request pattern; /**< its n is the part's number of ranks */
    uint32_t *phases;               /**< NULL: all */
    unsigned phases_count;
    bool probe;
    uint32_t *connectivity_check_sizes; /**< sizes of its messages in rotation; NULL: `sizes` */
    unsigned connectivity_check_sizes_count;
    bool listen; /**< ports without a flow in a phase count received frames */
    /**
     * @brief Settings that are common to all phases and parts: traffic, transfer_bytes, pingpong,
     * schedule, burst and latency.
     */
    struct phase phase;
    bool has_latency; /**< this key is present */
    uint32_t *sizes;
    unsigned sizes_count;
    struct doc_load load;
    int64_t warmup_ns;
    int64_t window_ns;
    int64_t cooldown_ns;
    int64_t drain_timeout_ns;
    int64_t drain_max_ns;
    uint64_t flood_limit;
    int64_t interval_ns; /**< time between interval results; 0: none */
    /** @brief Options of each transport, in the registry's order. */
    max_align_t options[DOC_TRANSPORTS_MAX][OPTION_BYTES_MAX / sizeof(max_align_t)];
};

struct doc_plan {
    struct pattern_request pattern; /**< its n is the plan's number of ranks */
    uint32_t *phases;               /**< NULL: all */
    unsigned phases_count;
    bool totals_only;
};

enum document_kind {
    DOCUMENT_JOB,
    DOCUMENT_PEERS,
    DOCUMENT_TRIAL,
    DOCUMENT_PLAN,
    DOCUMENT_BEAT,
    DOCUMENT_QUIT,
};

struct document {
    enum document_kind kind; /**< kind of the pointer that is set */
    struct doc_job *job;
    struct doc_peers *peers;
    struct doc_trial *trial;
    struct doc_plan *plan;
    uint64_t *heartbeat;
    bool *quit;
    struct mapping_memory memory;
};

/**
 * @brief Parse and check one document.
 *
 * Unknown keys and wrong types are rejected with their position (mapping_reader.h), and so are keys
 * that need or exclude each other.
 *
 * @param[out] document Document.
 * @param text Text of one document.
 * @param transports Transports with the options that a trial can have, NULL-terminated; must
 *        outlive the document.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, and the caller frees it by document_free(); -EINVAL with an error message that names
 *        line and key.
 */
int document_parse(struct document **document, const struct mapping_text *text,
                   const struct transport *const *transports, struct err *err);
/**
 * @brief Free a document.
 *
 * @param document Document; NULL: none.
 */
void document_free(struct document *document);

/* --- documents as they arrive (document_stream.c) --- */

struct input; /* opaque */

/**
 * @brief Open a stream of documents.
 *
 * On a pipe, a document that is cut off by the end is ignored.
 *
 * @param[out] input Stream.
 * @param fd Open descriptor; stays the caller's.
 * @param whole True: the last document may lack its newline, because the input is a file.
 * @param transports Transports with the options that a trial can have, as for document_parse().
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, and the caller ends it by input_close(); -ENOMEM.
 */
int input_open(struct input **input, int fd, bool whole, const struct transport *const *transports,
               struct err *err);
/**
 * @brief Close a stream of documents; the descriptor stays the caller's.
 *
 * @param input Stream.
 */
void input_close(struct input *input);

/**
 * @brief Read the available bytes of a stream of documents.
 *
 * @param input Stream.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno when reading failed or a document is too large.
 */
int input_read(struct input *input, struct err *err);
/**
 * @brief Return whether the input's end of file has been read; complete documents may still be
 * waiting.
 *
 * @param input Stream.
 * @return True: the end of file has been read.
 */
bool input_ended(const struct input *input);

/**
 * @brief Return the next complete document; empty lines are skipped.
 *
 * @param input Stream.
 * @param[out] document Document.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 1 and *document, which the caller frees; 0: no document is complete; -EINVAL: the
 *        document is invalid.
 */
int input_next(struct input *input, struct document **document, struct err *err);

#endif
