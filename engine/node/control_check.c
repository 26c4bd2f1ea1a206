/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_check.h"

#include "address.h"
#include "clock.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TOKEN_DIGITS 32
#define REQUEST_INTERVAL_NS (100 * NS_PER_MS)
#define REQUEST_TIME_NS (3 * NS_PER_S) /* partners may begin later, and datagrams get lost */
#define DATAGRAMS_PER_TURN 256

/* A reply is as long as the request: nothing is amplified. Only who knows the token can make one.
 */
struct datagram {
    char token[TOKEN_DIGITS];
    uint32_t is_reply;
    uint32_t partner; /* the requester's number for whom it asks */
};

struct partner {
    struct sockaddr_storage address;
    bool has_replied;
};

struct check {
    int fd;
    char token[TOKEN_DIGITS];
    struct partner *partners;
    size_t count;
};

static int listen_on(const char *text, struct err *err)
{
    struct sockaddr_storage address;
    int rc = address_parse(text, &address, err);
    int fd = rc < 0 ? rc : socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (rc < 0)
        return rc;
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    rc = err_set(err, -errno, "the control address %s can't be used: %s", text, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* 1: there are partners; 0: `in` ended before. */
static int read_partners(struct check *check, FILE *in, struct err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length = getline(&line, &size, in);
    int rc = length > 0;

    if (length > 0 && length != TOKEN_DIGITS + 1)
        rc = err_set(err, -EINVAL, "a token of %d digits comes first", TOKEN_DIGITS);
    if (rc > 0)
        memcpy(check->token, line, TOKEN_DIGITS);
    while (rc > 0 && (length = getline(&line, &size, in)) > 1) {
        struct partner *more = reallocarray(check->partners, check->count + 1, sizeof *more);

        line[strcspn(line, "\n")] = '\0';
        if (more == NULL) {
            rc = err_set(err, -ENOMEM, "out of memory");
            break;
        }
        check->partners = more;
        more[check->count].has_replied = false;
        rc = address_parse(line, &more[check->count++].address, err) < 0 ? -EINVAL : 1;
    }
    free(line);
    return rc;
}

/* What is lost is sent again. */
static void send_to(const struct check *check, bool is_reply, uint32_t partner,
                    const struct sockaddr_storage *to)
{
    struct datagram datagram = {.is_reply = is_reply, .partner = partner};

    memcpy(datagram.token, check->token, TOKEN_DIGITS);
    (void)sendto(check->fd, &datagram, sizeof datagram, 0, (const struct sockaddr *)to, sizeof *to);
}

static void receive(struct check *check)
{
    struct datagram datagram;

    for (int i = 0; i < DATAGRAMS_PER_TURN; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        ssize_t length =
            recvfrom(check->fd, &datagram, sizeof datagram, 0, (struct sockaddr *)&from, &size);

        if (length < 0 && errno == EAGAIN)
            return;
        if (length != (ssize_t)sizeof datagram ||
            memcmp(datagram.token, check->token, TOKEN_DIGITS) != 0)
            continue;
        if (!datagram.is_reply)
            send_to(check, true, datagram.partner, &from);
        else if (datagram.partner < check->count)
            check->partners[datagram.partner].has_replied = true;
    }
}

static void report(const struct check *check, FILE *out)
{
    struct kernel_sync_status clock = {0};
    json_t *record, *answered = json_array();
    struct timespec now;

    for (size_t i = 0; i < check->count; i++)
        if (check->partners[i].has_replied)
            json_array_append_new(answered, json_integer((json_int_t)i));
    kernel_sync_read(&clock);
    clock_gettime(CLOCK_REALTIME, &now);
    record = json_pack("{s:o, s:I, s:b, s:I}", "answered", answered, "realtime_ns",
                       (json_int_t)(now.tv_sec * NS_PER_S + now.tv_nsec), "synchronized",
                       clock.synchronized, "max_error_ns", (json_int_t)clock.maxerror_ns);
    json_dumpf(record, out, JSON_COMPACT);
    json_decref(record);
    fputc('\n', out);
    fflush(out);
}

/* Until `in` ends: others ask as long as this node does, and later. */
static void exchange(struct check *check, FILE *in, FILE *out)
{
    int64_t begin_ns = clock_now();
    bool reported = false;

    for (;;) {
        struct pollfd waits[] = {{.fd = check->fd, .events = POLLIN},
                                 {.fd = fileno(in), .events = POLLIN}};
        bool waiting = false;

        for (uint32_t i = 0; i < check->count && !reported; i++) {
            if (check->partners[i].has_replied)
                continue;
            waiting = true;
            send_to(check, false, i, &check->partners[i].address);
        }
        if (!reported && (!waiting || clock_now() - begin_ns > REQUEST_TIME_NS)) {
            report(check, out);
            reported = true;
        }
        (void)poll(waits, 2, REQUEST_INTERVAL_NS / NS_PER_MS);
        receive(check);
        if (waits[1].revents != 0 && fgetc(in) == EOF)
            return;
    }
}

int control_check(const char *address, FILE *in, FILE *out, struct err *err)
{
    struct check check = {.fd = listen_on(address, err)};
    int rc = check.fd;

    if (rc >= 0)
        rc = read_partners(&check, in, err);
    if (rc > 0)
        exchange(&check, in, out);
    free(check.partners);
    if (check.fd >= 0)
        close(check.fd);
    return rc < 0 ? rc : 0;
}
