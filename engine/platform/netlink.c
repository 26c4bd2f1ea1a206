/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlink.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 32768 /* what the kernel sends at once is at most that long */
#define DUMP_TRIES 10

int netlink_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? -errno : fd;
}

void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags,
                    size_t fixed_bytes)
{
    struct nlmsghdr *header = mnl_nlmsg_put_header(request->bytes);

    header->nlmsg_type = type;
    header->nlmsg_flags = flags | NLM_F_REQUEST | NLM_F_ACK;
    request->fixed_bytes = fixed_bytes;
    return mnl_nlmsg_put_extra_header(header, fixed_bytes);
}

/* What an acknowledgement, an error or the end of a dump says: both begin with an errno. */
static int end_of(const struct nlmsghdr *message)
{
    int code;

    if (mnl_nlmsg_get_payload_len(message) < sizeof code)
        return message->nlmsg_type == NLMSG_DONE ? 0 : -EPROTO;
    memcpy(&code, mnl_nlmsg_get_payload(message), sizeof code);
    return code < 0 ? code : 0;
}

/* Does the message have its fixed part, and only whole attributes behind it? */
static bool is_whole(const struct nlmsghdr *message, size_t fixed_bytes)
{
    const struct nlattr *attribute = mnl_nlmsg_get_payload_offset(message, fixed_bytes);
    const char *end = mnl_nlmsg_get_payload_tail(message);

    if (mnl_nlmsg_get_payload_len(message) < fixed_bytes)
        return false;
    while (mnl_attr_ok(attribute, (int)(end - (const char *)attribute)))
        attribute = mnl_attr_next(attribute);
    return (const char *)attribute >= end;
}

/* The state of one request. */
struct exchange {
    const struct netlink_request *request;
    const struct netlink_reader *reader;
    int rc; /* the first error */
    bool ended;
};

static void handle_message(struct exchange *exchange, const struct nlmsghdr *message)
{
    const struct netlink_reader *reader = exchange->reader;
    bool is_answer = message->nlmsg_type >= NLMSG_MIN_TYPE;
    int rc = 0;

    if (message->nlmsg_seq != exchange->request->header.nlmsg_seq)
        return; /* the rest of an earlier answer */
    exchange->ended = message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE;
    if (message->nlmsg_flags & NLM_F_DUMP_INTR)
        rc = -EINTR;
    else if (exchange->ended)
        rc = end_of(message);
    else if (message->nlmsg_type == NLMSG_OVERRUN ||
             (is_answer && !is_whole(message, exchange->request->fixed_bytes)))
        rc = -EPROTO;
    else if (is_answer && exchange->rc == 0 && reader != NULL && reader->each != NULL)
        rc = reader->each(message, reader->data);
    exchange->rc = exchange->rc != 0 ? exchange->rc : rc;
}

/* Reads to the end of the answer also after an error: the socket is used again. */
static int receive(int fd, struct exchange *exchange)
{
    _Alignas(struct nlmsghdr) uint8_t buffer[ANSWER_BYTES];

    while (!exchange->ended) {
        const struct nlmsghdr *message = (const void *)buffer;
        ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
        int left = (int)got;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return -errno;
        if (got <= 0 || got > ANSWER_BYTES)
            return -EPROTO;
        for (; !exchange->ended && mnl_nlmsg_ok(message, left);
             message = mnl_nlmsg_next(message, &left))
            handle_message(exchange, message);
        if (!exchange->ended && left > 0)
            return -EPROTO;
    }
    return exchange->rc;
}

int netlink_ask(int fd, struct netlink_request *request, const struct netlink_reader *reader)
{
    static _Atomic uint32_t sequence;
    int rc = -EINTR;

    for (int i = 0; i < DUMP_TRIES && rc == -EINTR; i++) {
        struct exchange exchange = {.request = request, .reader = reader};

        if (i > 0 && reader != NULL && reader->forget != NULL)
            reader->forget(reader->data);
        request->header.nlmsg_seq = ++sequence;
        if (send(fd, request->bytes, request->header.nlmsg_len, 0) < 0)
            return -errno;
        rc = receive(fd, &exchange);
    }
    return rc;
}

int netlink_ask_here(struct netlink_request *request, const struct netlink_reader *reader)
{
    int fd = netlink_open();
    int rc = fd < 0 ? fd : netlink_ask(fd, request, reader);

    if (fd >= 0)
        close(fd);
    return rc;
}

/* --- attributes --- */

const struct nlattr *netlink_find(const struct nlmsghdr *message, size_t fixed_bytes, uint16_t type)
{
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, fixed_bytes)
    {
        if (mnl_attr_get_type(attribute) == type)
            return attribute;
    }
    return NULL;
}

const struct nlattr *netlink_find_in(const struct nlattr *outer, uint16_t type)
{
    struct nlattr *attribute;

    if (outer == NULL)
        return NULL;
    mnl_attr_for_each_nested(attribute, outer)
    {
        if (mnl_attr_get_type(attribute) == type)
            return attribute;
    }
    return NULL;
}

bool netlink_copy(const struct nlattr *attribute, void *to, size_t bytes)
{
    if (attribute == NULL || mnl_attr_get_payload_len(attribute) < bytes)
        return false;
    memcpy(to, mnl_attr_get_payload(attribute), bytes);
    return true;
}

uint32_t netlink_u32(const struct nlattr *attribute, uint32_t missing)
{
    (void)netlink_copy(attribute, &missing, sizeof missing);
    return missing;
}

void netlink_text(const struct nlattr *attribute, char *to, size_t size)
{
    size_t length = attribute != NULL ? mnl_attr_get_payload_len(attribute) : 0;

    length = length < size ? length : size - 1;
    if (attribute != NULL)
        memcpy(to, mnl_attr_get_payload(attribute), length);
    to[length] = '\0';
}
