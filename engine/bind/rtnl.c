/* SPDX-License-Identifier: BSD-3-Clause */
#include "rtnl.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel breaks a dump off (NLM_F_DUMP_INTR) when what it lists has changed meanwhile. */
#define DUMP_TRIES 10

static int receive(struct mnl_socket *socket, const struct rtnl_reader *reader)
{
    _Alignas(struct nlmsghdr) char buffer[32768];
    int more = MNL_CB_OK;

    while (more > MNL_CB_STOP) {
        ssize_t got = mnl_socket_recvfrom(socket, buffer, sizeof buffer);

        if (got < 0)
            return -errno;
        errno = 0;
        more = mnl_cb_run(buffer, (size_t)got, 1, mnl_socket_get_portid(socket), reader->callback,
                          reader->data);
        if (more < 0)
            return errno ? -errno : -EPROTO;
    }
    return 0;
}

static int ask_once(struct nlmsghdr *request, const struct rtnl_reader *reader)
{
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    int rc = 0;

    if (socket == NULL)
        return -errno;
    if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
        mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
        rc = -errno;
    else
        rc = receive(socket, reader);
    mnl_socket_close(socket);
    return rc;
}

int bind_rtnl_ask(struct nlmsghdr *request, const struct rtnl_reader *reader)
{
    static const struct rtnl_reader nothing = {NULL, NULL, NULL};
    int rc = -EINTR;

    reader = reader != NULL ? reader : &nothing;
    /* Each request ends with something: a dump by itself, the others with an acknowledgement. */
    request->nlmsg_flags |= NLM_F_REQUEST;
    if ((request->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
        request->nlmsg_flags |= NLM_F_ACK;
    request->nlmsg_seq = 1;
    for (int i = 0; i < DUMP_TRIES && rc == -EINTR; i++) {
        if (i > 0 && reader->again != NULL)
            reader->again(reader->data);
        rc = ask_once(request, reader);
    }
    return rc;
}

char *bind_rtnl_to_text(const struct nlmsghdr *message)
{
    const unsigned char *body = mnl_nlmsg_get_payload(message);
    size_t size = mnl_nlmsg_get_payload_len(message);
    char *text = malloc(2 * size + 1);

    if (text == NULL)
        return NULL;
    text[0] = '\0';
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", body[i]);
    return text;
}

int bind_rtnl_from_text(struct nlmsghdr *message, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t length = strlen(text);
    unsigned char *body;

    if (length % 2 != 0 || length / 2 > RTNL_MESSAGE_MAX - MNL_NLMSG_HDRLEN ||
        strspn(text, digits) != length)
        return -EINVAL;
    mnl_nlmsg_put_header(message);
    body = mnl_nlmsg_put_extra_header(message, length / 2);
    for (size_t i = 0; i < length / 2; i++)
        body[i] = (unsigned char)((strchr(digits, text[2 * i]) - digits) << 4 |
                                  (strchr(digits, text[2 * i + 1]) - digits));
    return 0;
}
