/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The one client of rtnetlink(7): requests, dumps, and readers of attributes. Messages are laid out
 * by libmnl.
 *
 * Answers are input: a message that is shorter than its fixed part, an answer that is cut off, or a
 * dump that ends with an error is an error here. A dump that the kernel interrupted
 * (NLM_F_DUMP_INTR) is requested again. No call blocks: the kernel answers inside the request.
 */
#ifndef ENGINE_NETLINK_H
#define ENGINE_NETLINK_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETLINK_REQUEST_BYTES 8192 /* a whole route of any origin fits */

struct netlink_request {
    union {
        struct nlmsghdr header;
        uint8_t bytes[NETLINK_REQUEST_BYTES];
    };
    size_t fixed_bytes; /* of the part before the attributes; answers have the same */
};

/* What receives the answers. */
struct netlink_reader {
    /* Called for each answer. Anything but 0 (a negative errno) is the result of the request. NULL:
     * answers do not matter, only success. */
    int (*each)(const struct nlmsghdr *answer, void *data);
    /* Removes what an interrupted dump has given so far; NULL: nothing to remove. */
    void (*forget)(void *data);
    void *data;
};

/* Begins a request and returns its fixed part, all zeros; attributes follow by mnl_attr_put. `type`
 * is one of RTM_*; `flags`: NLM_F_DUMP, NLM_F_CREATE ...; NLM_F_REQUEST and NLM_F_ACK are added. */
void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags,
                    size_t fixed_bytes);

/* A socket of the thread's namespace, where it stays; or a negative errno. */
int netlink_open(void);

/* Sends the request and hands each answer to the reader (NULL: none). 0, what the kernel or the
 * reader said, -EPROTO (an answer is cut off or malformed), or -EINTR (a dump was interrupted each
 * time). */
int netlink_ask(int fd, struct netlink_request *request, const struct netlink_reader *reader);

/* The same on a socket of its own in the thread's namespace. */
int netlink_ask_here(struct netlink_request *request, const struct netlink_reader *reader);

/* The first attribute of this type behind a fixed part of so many bytes; NULL: there is none. */
const struct nlattr *netlink_find(const struct nlmsghdr *message, size_t fixed_bytes,
                                  uint16_t type);
/* The same among the attributes inside of another; NULL where that is NULL, too. */
const struct nlattr *netlink_find_in(const struct nlattr *outer, uint16_t type);

/* An attribute's value; what is missing (NULL) or too short leaves the default. */
uint32_t netlink_u32(const struct nlattr *attribute, uint32_t missing);
bool netlink_copy(const struct nlattr *attribute, void *to, size_t bytes);
void netlink_text(const struct nlattr *attribute, char *to, size_t size);

#endif
