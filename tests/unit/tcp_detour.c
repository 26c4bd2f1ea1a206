/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_detour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The places of TCP port and IPv4 address in the transport's blob. */
#define BLOB_PORT 2
#define BLOB_ADDRESS 4

void detour_open(struct detour *detour, const struct blob *target)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    memset(detour, 0, sizeof *detour);
    detour->near = detour->far = -1;
    detour->target = detour->blob = *target;
    detour->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(detour->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(detour->listener, 16), 0);
    assert_int_equal(getsockname(detour->listener, (struct sockaddr *)&address, &size), 0);
    memcpy(detour->blob.bytes + BLOB_PORT, &address.sin_port, sizeof address.sin_port);
    memcpy(detour->blob.bytes + BLOB_ADDRESS, &address.sin_addr, sizeof address.sin_addr);
}

static void link_up(struct detour *detour)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    memcpy(&address.sin_port, detour->target.bytes + BLOB_PORT, sizeof address.sin_port);
    memcpy(&address.sin_addr, detour->target.bytes + BLOB_ADDRESS, sizeof address.sin_addr);
    detour->far = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(detour->far, (struct sockaddr *)&address, sizeof address), 0);
    detour->there =
        (struct detour_way){.from = detour->near, .to = detour->far, .change = detour->change};
    detour->back =
        (struct detour_way){.from = detour->far, .to = detour->near, .change = detour->change_back};
}

static void move(struct detour_way *way)
{
    ssize_t got =
        recv(way->from, way->buffer + way->held, sizeof way->buffer - way->held, MSG_DONTWAIT);
    ssize_t sent;

    if (got > 0) {
        if (way->change)
            way->change(way->buffer + way->held, (size_t)got, way->passed);
        way->held += (size_t)got;
        way->passed += (uint64_t)got;
    }
    sent = send(way->to, way->buffer, way->held, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        way->held -= (size_t)sent;
        memmove(way->buffer, way->buffer + sent, way->held);
    }
    if (got == 0 && way->held == 0)
        shutdown(way->to, SHUT_WR);
}

void detour_pump(void *context)
{
    struct detour *detour = context;

    if (detour->near < 0) {
        detour->near = accept(detour->listener, NULL, NULL);
        if (detour->near < 0)
            return;
        link_up(detour);
    }
    move(&detour->there);
    move(&detour->back);
}

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};

    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

void detour_cut(struct detour *detour)
{
    reset(detour->near);
    reset(detour->far);
    detour->near = detour->far = -1;
}

void detour_close(struct detour *detour)
{
    detour_cut(detour);
    close(detour->listener);
}
