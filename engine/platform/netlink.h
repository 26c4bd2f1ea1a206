/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The one client of rtnetlink(7): requests, dumps, readers of attributes; and what several
 * parts ask: the state of a link, and where packets to an address go.
 *
 * Messages are laid out by libmnl. `fd` is a socket of netlink_open(); answers are about its
 * namespace. No privilege is needed.
 *
 * Answers are input: a message that is shorter than its fixed part, an answer that is cut off, or a
 * dump that ends with an error is an error here. No call blocks: the kernel answers inside the
 * request.
 */
#ifndef ENGINE_NETLINK_H
#define ENGINE_NETLINK_H

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
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
 * @brief Send the request and hand each answer to a reader.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param request Request that netlink_begin() began.
 * @param each Takes each answer; anything but 0 (a negative errno) is the result. NULL: answers do
 *        not matter, only success.
 * @param data Handed to `each`.
 * @return 0; what the kernel or the reader said; -EPROTO: an answer is cut off or malformed;
 *        -EINTR: the kernel interrupted a dump (NLM_F_DUMP_INTR), so that it is to be repeated.
 */
int netlink_ask(int fd, struct netlink_request *request,
                int (*each)(const struct nlmsghdr *answer, void *data), void *data);

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

struct link_state {
    unsigned flags; /**< IFF_* */
    uint16_t type;  /**< ARPHRD_* */
    uint32_t mtu;
    uint8_t mac[6];
    uint32_t carrier_downs; /**< times that the carrier was lost */
    struct rtnl_link_stats64 stats;
};

/**
 * @brief Frames that a link did not send, since link_drops_begin.
 *
 * The kernel counts in tx_dropped both what the host dropped and what it had no carrier for
 * (noop_qdisc, __dev_direct_xmit), and none of the latter in tx_carrier_errors. So all of
 * tx_dropped between two readings is the cable's if the carrier was away at one of them or was lost
 * between them.
 */
struct link_drops {
    uint64_t host;
    uint64_t no_carrier;
    uint64_t last_dropped; /**< as last read, as the two below */
    uint32_t last_downs;
    bool last_running;
};

/**
 * @brief Read the state of a link.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param ifindex Index of the interface.
 * @param link Takes the state.
 * @return 0; -ENODEV: there is no such link; or another negative errno.
 */
int link_read(int fd, int ifindex, struct link_state *link);

/**
 * @brief Return whether a link is up and has a carrier.
 *
 * @param link State of the link.
 * @return True: it is.
 */
bool link_is_running(const struct link_state *link);

/**
 * @brief Begin to count what a link does not send.
 *
 * @param drops Counts.
 * @param now Present state.
 */
void link_drops_begin(struct link_drops *drops, const struct link_state *now);
/**
 * @brief Add what the link has not sent since the last call.
 *
 * @param drops Counts.
 * @param now Present state.
 */
void link_drops_update(struct link_drops *drops, const struct link_state *now);

/**
 * @brief Return the packets that the link's root queueing discipline dropped.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param ifindex Index of the interface.
 * @return Packets; -1: it does not say.
 */
int64_t link_queue_drops(int fd, int ifindex);

/**
 * @brief Begin the request for the route to an address (4 bytes of AF_INET, 16 of AF_INET6).
 *
 * @param request Takes the request.
 * @param family AF_INET or AF_INET6.
 * @param address Socket address or address bytes.
 * @return The fixed part, inside of `request`.
 */
struct rtmsg *route_begin(struct netlink_request *request, int family, const void *address);

/**
 * @brief Return whether the kernel delivers packets to an address within the namespace.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param family AF_INET or AF_INET6.
 * @param address Socket address or address bytes.
 * @param by Index of the interface by which packets come; 0: any.
 * @return True: it does.
 */
bool route_is_local(int fd, int family, const void *address, unsigned by);

#endif
