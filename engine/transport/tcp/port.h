/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A tcp port: one address in one network namespace, a listening socket on it, and the
 * connections that have arrived but belong to no lane yet. All of this is the main thread's; a
 * worker never touches it.
 */
#ifndef ENGINE_TCP_PORT_H
#define ENGINE_TCP_PORT_H

#include "err.h"
#include "handshake.h"
#include "ip_port.h"
#include "transport.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

/** A connection on its way in. It is half open until its claim is verified; then it waits for the
 * lane that it claims, because a partner may be a phase ahead. */
struct tcp_arrival {
    TAILQ_ENTRY(tcp_arrival) link;
    int fd;
    bool proven;
    int64_t came_ns;
    struct sockaddr_storage from;
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    unsigned claim_bytes; /**< read so far */
    struct tcp_place place;
};

TAILQ_HEAD(tcp_arrivals, tcp_arrival); /**< the oldest first */

/** Connections that were dropped because they did not prove that they hold the run's key. */
struct tcp_rejected {
    uint64_t count;
    struct sockaddr_storage from; /**< of the last one */
    const char *why;
    int64_t warned_ns; /**< when the log last spoke of one; 0: never */
    int64_t turn_ns;   /**< when the present turn began ... */
    unsigned in_turn;  /**< ... and how many were dropped in it */
};

struct transport_port {
    struct ip_port ip;          /**< first; its socket is the listener */
    uint8_t key[TCP_KEY_BYTES]; /**< since the first lane was prepared; no arrival is read before */
    bool keyed;
    int epoll; /**< over the listener, the arrivals, and connections out that are not ready yet */
    bool listening; /**< the listener wakes whoever waits for `epoll` */
    struct tcp_arrivals half_open;
    unsigned half_open_count;
    unsigned half_open_most; /**< more wait in the kernel's backlog */
    struct tcp_arrivals proven;
    unsigned proven_count;
    struct tcp_rejected rejected;
};

int tcp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err);
void tcp_port_facts(struct transport_port *port, struct port_facts *facts);
void tcp_port_status(struct transport_port *port, struct port_status *status);
/** The key by which connections are proved is made once, from the run's, when that is known. */
void tcp_port_use_key(struct transport_port *port, const struct transport_secret *secret);
/** A connection out whose partner has something to say before it is ready. 0 or a negative errno.
 */
int tcp_port_watch(struct transport_port *port, int fd);
void tcp_port_forget(struct transport_port *port, int fd);
void tcp_port_close(struct transport_port *port);

#define TCP_REJECTED_TEXT 128 /* "10.0.0.2 port 4001: it does not ..." */

/* --- connections that come in --- */

/** Accepts, reads claims, rejects who does not hold the key. Never blocks. */
void tcp_acceptor_work(struct transport_port *port, int64_t now_ns);
/** How many connections were dropped without the run's key; if any, who the last one was and why.
 */
uint64_t tcp_port_rejected(struct transport_port *port, char *last, size_t size);
/** The next proven connection of a phase, or NULL. The caller owns it (fd and memory). */
struct tcp_arrival *tcp_acceptor_take(struct transport_port *port, const struct phase *phase);
/** Throws away what has come for a phase that is over. */
void tcp_acceptor_forget(struct transport_port *port, const struct phase *phase);

#endif
