/* SPDX-License-Identifier: BSD-3-Clause */
#include "app.h"

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
#define DATAGRAMS_PER_TURN 256
#define REQUEST_TIME_NS (3 * NS_PER_S) /* partners may begin later, and datagrams may be lost */

/* Datagram of a check. A reply is as long as its request, so nothing is amplified, and both need
 * the token. */
struct datagram {
    char token[TOKEN_DIGITS];
    uint32_t is_reply;
    uint32_t partner; /* the requester's number of the partner */
};

struct partner {
    struct sockaddr_storage address;
    bool has_replied;
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

/* Read the token and the partners. Return their number; 0: `in` ended before. */
static int read_partners(FILE *in, char *token, struct partner **partners, struct err *err)
{
    char line[128];
    int rc = 0, count = 0;

    if (fgets(line, sizeof line, in) == NULL)
        return 0;
    if (strcspn(line, "\n") != TOKEN_DIGITS)
        return err_set(err, -EINVAL, "the first line must be a token of %d digits", TOKEN_DIGITS);
    memcpy(token, line, TOKEN_DIGITS);
    while (rc == 0 && fgets(line, sizeof line, in) != NULL && line[0] != '\n') {
        struct partner *more = reallocarray(*partners, (size_t)count + 1, sizeof *more);

        if (more == NULL)
            return err_set(err, -ENOMEM, "out of memory");
        *partners = more;
        line[strcspn(line, "\n")] = '\0';
        more[count].has_replied = false;
        rc = address_parse(line, &more[count++].address, err);
    }
    return rc < 0 ? rc : count;
}

static void report(const struct partner *partners, uint32_t count, FILE *out)
{
    struct kernel_sync_status clock = {0};
    json_t *record, *answered = json_array();
    struct timespec now;

    for (uint32_t i = 0; i < count; i++)
        if (partners[i].has_replied)
            json_array_append_new(answered, json_integer(i));
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

int control_check(const char *address, FILE *in, FILE *out, struct err *err)
{
    int fd = listen_on(address, err), rc = fd;
    int64_t begin_ns = clock_now();
    struct partner *partners = NULL;
    struct datagram mine = {.is_reply = false}, got;
    bool reported = false;

    if (fd >= 0)
        rc = read_partners(in, mine.token, &partners, err);
    /* Answer requests until `in` ends: partners may send them later than this node does. */
    while (rc > 0) {
        struct pollfd waits[] = {{.fd = fd, .events = POLLIN},
                                 {.fd = fileno(in), .events = POLLIN}};
        bool waiting = false;

        for (uint32_t i = 0; i < (uint32_t)rc && !reported; i++) {
            if (partners[i].has_replied)
                continue;
            waiting = true;
            mine.partner = i; /* requests are repeated: datagrams may be lost */
            (void)sendto(fd, &mine, sizeof mine, 0, (struct sockaddr *)&partners[i].address,
                         sizeof partners[i].address);
        }
        if (!reported && (!waiting || clock_now() - begin_ns > REQUEST_TIME_NS)) {
            report(partners, (uint32_t)rc, out);
            reported = true;
        }
        (void)poll(waits, 2, REQUEST_INTERVAL_NS / NS_PER_MS);
        for (int i = 0; i < DATAGRAMS_PER_TURN; i++) {
            struct sockaddr_storage from = {0};
            socklen_t size = sizeof from;
            ssize_t length = recvfrom(fd, &got, sizeof got, 0, (struct sockaddr *)&from, &size);

            if (length < 0 && errno == EAGAIN)
                break;
            if (length != (ssize_t)sizeof got || memcmp(got.token, mine.token, TOKEN_DIGITS) != 0)
                continue;
            if (got.is_reply && got.partner < (uint32_t)rc)
                partners[got.partner].has_replied = true;
            if (got.is_reply)
                continue;
            got.is_reply = true;
            (void)sendto(fd, &got, sizeof got, 0, (struct sockaddr *)&from, size);
        }
        if (waits[1].revents != 0 && fgetc(in) == EOF)
            break;
    }
    free(partners);
    if (fd >= 0)
        close(fd);
    return rc < 0 ? rc : 0;
}
