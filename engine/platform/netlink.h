/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Client of rtnetlink(7): requests, dumps and attributes, and the two queries that several
 * callers need: a link's state, and the route to an address.
 *
 * Messages are laid out by libmnl. `fd` is a socket of netlink_open(); answers concern its
 * namespace. No privilege is needed.
 *
 * Answers are checked: a message that is shorter than its fixed part, a truncated answer, or a dump
 * that ends with an error is an error here. No call blocks: the kernel answers inside the request.
 */
#ifndef ENGINE_NETLINK_H
#define ENGINE_NETLINK_H

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETLINK_REQUEST_BYTES 8192 /**< a whole route of any kind fits */

struct netlink_request {
    union {
        struct nlmsghdr header;
        uint8_t bytes[NETLINK_REQUEST_BYTES];
    };
    size_t fixed_bytes; /**< bytes before the attributes, equal in answers */
};

/**
 * @brief Begin a netlink request: write the message header and a zeroed fixed part. The caller
 * fills the fixed part, and appends attributes by mnl_attr_put().
 *
 * @param[out] request Request.
 * @param type One of RTM_*.
 * @param flags NLM_F_DUMP, NLM_F_CREATE ...; NLM_F_REQUEST and NLM_F_ACK are added.
 * @param fixed_bytes Bytes of the part before the attributes.
 * @return The fixed part, inside of `request`.
 */
void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags,
                    size_t fixed_bytes);

/**
 * @brief Open a netlink socket in the thread's namespace.
 *
 * @return Descriptor, which the caller closes; or a negative errno.
 */
int netlink_open(void);

/**
 * @brief Send a netlink request and pass each answer to a reader.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param request Request that netlink_begin() began.
 * @param each Function that reads an answer; if it returns a negative errno, this is the result.
 *        NULL: the content of answers is ignored.
 * @param data Handed to `each`.
 * @return 0; the negative errno of the kernel or of `each`; -EPROTO: an answer is truncated or
 *        malformed; -EINTR: the kernel interrupted a dump (NLM_F_DUMP_INTR), which the caller must
 *        repeat.
 */
int netlink_ask(int fd, struct netlink_request *request,
                int (*each)(const struct nlmsghdr *answer, void *data), void *data);

/**
 * @brief Find the first attribute of a given type in a netlink message.
 *
 * @param message Message.
 * @param fixed_bytes Bytes before its attributes.
 * @param type Attribute type to find.
 * @return Attribute inside of the message; NULL: there is none.
 */
const struct nlattr *netlink_find(const struct nlmsghdr *message, size_t fixed_bytes,
                                  uint16_t type);
/**
 * @brief Find an attribute by its type among the attributes nested in another attribute.
 *
 * @param outer Attribute that holds others; NULL: none.
 * @param type Attribute type to find.
 * @return Attribute inside of `outer`; NULL: there is none, or `outer` is NULL.
 */
const struct nlattr *netlink_find_in(const struct nlattr *outer, uint16_t type);

/**
 * @brief Return the 32-bit number in a netlink attribute.
 *
 * @param attribute Attribute; NULL: missing.
 * @param missing Value to return if the attribute is missing or too short.
 * @return Number; `missing` where the attribute is missing or too short.
 */
uint32_t netlink_u32(const struct nlattr *attribute, uint32_t missing);
/**
 * @brief Copy the value of a netlink attribute.
 *
 * @param attribute Attribute; NULL: missing.
 * @param[out] to Value.
 * @param bytes Number of bytes to copy.
 * @return False: the attribute is missing or too short, and `to` is unchanged.
 */
bool netlink_copy(const struct nlattr *attribute, void *to, size_t bytes);
/**
 * @brief Copy the text of a netlink attribute, truncated to the buffer's size. A missing attribute
 * leaves the buffer unchanged.
 *
 * @param attribute Attribute; NULL: missing.
 * @param[out] to Text.
 * @param size Size of the buffer, bytes.
 */
void netlink_text(const struct nlattr *attribute, char *to, size_t size);

struct link_state {
    unsigned flags; /**< IFF_* */
    uint16_t type;  /**< ARPHRD_* */
    uint32_t mtu;
    uint8_t mac[6];
    uint32_t carrier_downs; /**< number of lost carriers */
    struct rtnl_link_stats64 stats;
};

/**
 * @brief Frames that a link did not send since link_drops_begin(), by cause: dropped by the host,
 * or without carrier.
 *
 * The kernel's tx_dropped counts both frames that the host dropped and frames without a carrier
 * (noop_qdisc, __dev_direct_xmit), and tx_carrier_errors has none of the latter. So all frames that
 * tx_dropped counts between two readings are attributed to the missing carrier, if there was none
 * at one of the readings or it was lost between them.
 */
struct link_drops {
    uint64_t host;
    uint64_t no_carrier;
    uint64_t last_dropped; /**< values at the last reading, as are the next two */
    uint32_t last_downs;
    bool last_running;
};

/**
 * @brief Read the state of a link.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param ifindex Index of the interface.
 * @param[out] link State.
 * @return 0; -ENODEV: there is no such link; or another negative errno.
 */
int link_read(int fd, int ifindex, struct link_state *link);

/**
 * @brief Return whether a network link is up and has a carrier.
 *
 * @param link State of the link.
 * @return True: it is up and has a carrier.
 */
bool link_is_running(const struct link_state *link);

/**
 * @brief Set the counts of frames that a link failed to send to zero, and store the present state
 * of the link.
 *
 * @param drops Counts.
 * @param now Present state.
 */
void link_drops_begin(struct link_drops *drops, const struct link_state *now);
/**
 * @brief Add the frames that a link failed to send since the last call.
 *
 * @param drops Counts.
 * @param now Present state.
 */
void link_drops_update(struct link_drops *drops, const struct link_state *now);

/**
 * @brief Return the number of packets that a link's root queueing discipline dropped.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param ifindex Index of the interface.
 * @return Number of packets; -1: unknown.
 */
int64_t link_queue_drops(int fd, int ifindex);

/**
 * @brief Begin a netlink request for the kernel's route to an IP address (4 bytes for AF_INET, 16
 * for AF_INET6).
 *
 * @param[out] request Request.
 * @param family AF_INET or AF_INET6.
 * @param address Socket address or address bytes.
 * @return The fixed part, inside of `request`.
 */
struct rtmsg *route_begin(struct netlink_request *request, int family, const void *address);

/**
 * @brief Return whether the kernel delivers packets for an address inside the network namespace,
 * instead of sending them by an interface.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param family AF_INET or AF_INET6.
 * @param address Socket address or address bytes.
 * @param by Index of the interface at which the packets arrive; 0: any.
 * @return True: the packets are delivered inside the namespace.
 */
bool route_is_local(int fd, int family, const void *address, unsigned by);

#endif
