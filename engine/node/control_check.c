/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_check.h"

#include "address.h"
#include "clock.h"
#include "kernel_sync_status.h"

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
#define WORD_BYTES 16
#define ASK_INTERVAL_NS (100 * NS_PER_MS)
#define ASK_TIME_NS (3 * NS_PER_S) /* partners may begin later, and datagrams get lost */
#define DATAGRAMS_A_TURN 256

static const char ask[WORD_BYTES] = "switchbench-ask";
static const char yes[WORD_BYTES] = "switchbench-yes";

/* The answer is as long as the question: nobody gets more than he sends. */
struct datagram {
    char word[WORD_BYTES];
    char token[TOKEN_DIGITS];
};

struct partner {
    struct sockaddr_storage address;
    bool has_answered;
};

struct reach {
    int fd;
    char token[TOKEN_DIGITS];
    struct partner *partners;
    size_t count;
};

static socklen_t size_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static int listen_on(const char *text, struct err *err)
{
    struct sockaddr_storage address;
    int rc = address_parse(text, &address, err);
    int fd;

    if (rc < 0)
        return rc;
    fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, -errno, "no socket for %s: %s", text, strerror(errno));
    if (bind(fd, (const struct sockaddr *)&address, size_of(&address)) == 0)
        return fd;
    rc = err_set(err, -errno, "the control address %s can't be used: %s", text, strerror(errno));
    close(fd);
    return rc;
}

/* --- what is to be asked --- */

static int add_partner(struct reach *reach, const char *text, struct err *err)
{
    struct partner *more = reallocarray(reach->partners, reach->count + 1, sizeof *more);

    if (more == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    reach->partners = more;
    more[reach->count] = (struct partner){.has_answered = false};
    return address_parse(text, &more[reach->count++].address, err);
}

/* 0 or 1: whether there is somebody to ask; `in` may end before. */
static int read_partners(struct reach *reach, FILE *in, struct err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length = getline(&line, &size, in);
    int rc = length > 0;

    if (length > 0 && length != TOKEN_DIGITS + 1)
        rc = err_set(err, -EINVAL, "a token of %d digits comes first", TOKEN_DIGITS);
    if (rc > 0)
        memcpy(reach->token, line, TOKEN_DIGITS);
    while (rc > 0 && (length = getline(&line, &size, in)) > 1) {
        int added;

        line[strcspn(line, "\n")] = '\0';
        added = add_partner(reach, line, err);
        rc = added < 0 ? added : rc;
    }
    free(line);
    return rc;
}

/* --- asking and answering --- */

static void send_word(const struct reach *reach, const char *word,
                      const struct sockaddr_storage *to)
{
    struct datagram datagram;

    memcpy(datagram.word, word, WORD_BYTES);
    memcpy(datagram.token, reach->token, TOKEN_DIGITS);
    (void)sendto(reach->fd, &datagram, sizeof datagram, 0, (const struct sockaddr *)to,
                 size_of(to)); /* lost ones are sent again */
}

static void note_answer(struct reach *reach, const struct sockaddr_storage *from)
{
    char sender[ADDRESS_TEXT_MAX], partner[ADDRESS_TEXT_MAX];

    address_format(from, sender, sizeof sender);
    for (size_t i = 0; i < reach->count; i++) {
        address_format(&reach->partners[i].address, partner, sizeof partner);
        if (strcmp(sender, partner) == 0)
            reach->partners[i].has_answered = true;
    }
}

static void receive(struct reach *reach)
{
    struct datagram datagram;

    for (int i = 0; i < DATAGRAMS_A_TURN; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        ssize_t length =
            recvfrom(reach->fd, &datagram, sizeof datagram, 0, (struct sockaddr *)&from, &size);

        if (length < 0 && errno == EAGAIN)
            return;
        if (length != (ssize_t)sizeof datagram ||
            memcmp(datagram.token, reach->token, TOKEN_DIGITS) != 0)
            continue;
        if (memcmp(datagram.word, ask, WORD_BYTES) == 0)
            send_word(reach, yes, &from);
        else if (memcmp(datagram.word, yes, WORD_BYTES) == 0)
            note_answer(reach, &from);
    }
}

static bool ask_all(struct reach *reach)
{
    bool all = true;

    for (size_t i = 0; i < reach->count; i++) {
        if (reach->partners[i].has_answered)
            continue;
        send_word(reach, ask, &reach->partners[i].address);
        all = false;
    }
    return all;
}

static void report(const struct reach *reach, FILE *out)
{
    struct discipline discipline = {0};
    json_t *said, *answered = json_array();
    struct timespec now;

    for (size_t i = 0; i < reach->count; i++)
        if (reach->partners[i].has_answered)
            json_array_append_new(answered, json_integer((json_int_t)i));
    discipline_read(&discipline);
    clock_gettime(CLOCK_REALTIME, &now);
    said = json_pack("{s:o, s:I, s:b, s:I}", "answered", answered, "realtime_ns",
                     (json_int_t)(now.tv_sec * NS_PER_S + now.tv_nsec), "synchronized",
                     discipline.synchronized, "max_error_ns", (json_int_t)discipline.maxerror_ns);
    json_dumpf(said, out, JSON_COMPACT);
    json_decref(said);
    fputc('\n', out);
    fflush(out);
}

/* Until `in` ends: others ask as long as we do, and later. */
static void converse(struct reach *reach, FILE *in, FILE *out)
{
    int64_t begin_ns = clock_now();
    bool reported = false;

    for (;;) {
        struct pollfd waits[] = {{.fd = reach->fd, .events = POLLIN},
                                 {.fd = fileno(in), .events = POLLIN}};

        if (!reported && (ask_all(reach) || clock_now() - begin_ns > ASK_TIME_NS)) {
            report(reach, out);
            reported = true;
        }
        (void)poll(waits, 2, ASK_INTERVAL_NS / NS_PER_MS);
        receive(reach);
        if (waits[1].revents != 0 && fgetc(in) == EOF)
            return;
    }
}

int reach_try(const char *address, FILE *in, FILE *out, struct err *err)
{
    struct reach reach = {.fd = listen_on(address, err)};
    int rc = reach.fd;

    if (rc >= 0)
        rc = read_partners(&reach, in, err);
    if (rc > 0)
        converse(&reach, in, out);
    free(reach.partners);
    if (reach.fd >= 0)
        close(reach.fd);
    return rc < 0 ? rc : 0;
}
