/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The one client of rtnetlink(7): requests, dumps, and readers of attributes.
 *
 * Messages are laid out by libmnl.
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

#define NETLINK_REQUEST_BYTES 8192 /**< a whole route of any origin fits */

struct netlink_request {
    union {
        struct nlmsghdr header;
        uint8_t bytes[NETLINK_REQUEST_BYTES];
    };
    size_t fixed_bytes; /**< of the part before the attributes; answers have the same */
};

/** @brief What receives the answers. */
struct netlink_reader {
    /**
     * @brief Called for each answer.
     *
     * Anything but 0 (a negative errno) is the result of the request. NULL: answers do not matter,
     * only success.
     */
    int (*each)(const struct nlmsghdr *answer, void *data);
    /** @brief Removes what an interrupted dump has given so far; NULL: nothing to remove. */
    void (*forget)(void *data);
    void *data;
};

/**
 * @brief Begin a request; its fixed part is all zeros, and attributes follow by mnl_attr_put().
 *
 * @param request Takes the request.
 * @param type One of RTM_*.
 * @param flags NLM_F_DUMP, NLM_F_CREATE ...; NLM_F_REQUEST and NLM_F_ACK are added.
 * @param fixed_bytes Bytes of the part before the attributes.
 * @return The fixed part, inside of `request`.
 */
void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags,
                    size_t fixed_bytes);

/**
 * @brief Open a socket of the thread's namespace, where it stays.
 *
 * @return Descriptor, which the caller closes; or a negative errno.
 */
int netlink_open(void);

/**
 * @brief Send the request and hand each answer to the reader.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param request Request that netlink_begin() began.
 * @param reader Takes each answer; NULL: none.
 * @return 0; what the kernel or the reader said; -EPROTO: an answer is cut off or malformed;
 *        -EINTR: a dump was interrupted each time.
 */
int netlink_ask(int fd, struct netlink_request *request, const struct netlink_reader *reader);

/**
 * @brief Send a request as netlink_ask() does, on a socket of its own in the thread's namespace.
 *
 * @param request Request that netlink_begin() began.
 * @param reader Takes each answer; NULL: none.
 * @return As netlink_ask().
 */
int netlink_ask_here(struct netlink_request *request, const struct netlink_reader *reader);

/**
 * @brief Find the first attribute of this type behind a fixed part of so many bytes.
 *
 * @param message Message.
 * @param fixed_bytes Bytes before its attributes.
 * @param type Type that is looked for.
 * @return Attribute inside of the message; NULL: there is none.
 */
const struct nlattr *netlink_find(const struct nlmsghdr *message, size_t fixed_bytes,
                                  uint16_t type);
/**
 * @brief Find an attribute among those inside of another.
 *
 * @param outer Attribute that holds others; NULL: none.
 * @param type Type that is looked for.
 * @return Attribute inside of `outer`; NULL: there is none, or `outer` is NULL.
 */
const struct nlattr *netlink_find_in(const struct nlattr *outer, uint16_t type);

/**
 * @brief Return an attribute's number.
 *
 * @param attribute Attribute; NULL: missing.
 * @param missing Value where there is none.
 * @return Number; `missing` where the attribute is missing or too short.
 */
uint32_t netlink_u32(const struct nlattr *attribute, uint32_t missing);
/**
 * @brief Copy an attribute's value.
 *
 * @param attribute Attribute; NULL: missing.
 * @param to Takes the value.
 * @param bytes How many.
 * @return False: missing or too short; `to` is unchanged.
 */
bool netlink_copy(const struct nlattr *attribute, void *to, size_t bytes);
/**
 * @brief Copy an attribute's text, cut to the size; unchanged where it is missing.
 *
 * @param attribute Attribute; NULL: missing.
 * @param to Takes the text.
 * @param size Bytes that there are or that may be written.
 */
void netlink_text(const struct nlattr *attribute, char *to, size_t size);

#endif
