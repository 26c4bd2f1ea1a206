/* SPDX-License-Identifier: BSD-3-Clause */
#include "app.h"

#include "address.h"
#include "endpoint.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_MS 5
#define REQUEST_TIME_NS (3 * NS_PER_S) /* partners may begin later, and datagrams may be lost */

/* Read the key of the control messages and the nodes' addresses, of which one is this node's.
 * Return 0; -ENODATA: `in` ended before. */
static int read_peers(FILE *in, const struct sockaddr_storage *own, struct control_peers *peers,
                      struct sockaddr_storage **addresses, struct err *err)
{
    char line[128];
    bool found = false;
    int rc = 0;

    if (fgets(line, sizeof line, in) == NULL)
        return -ENODATA;
    if (strcspn(line, "\n") != sizeof peers->key)
        return err_set(
            err, -EINVAL,
            "the first line of standard input must be the key of the control messages, %zu "
            "characters",
            sizeof peers->key);
    memcpy(peers->key, line, sizeof peers->key);
    for (; rc == 0 && fgets(line, sizeof line, in) != NULL && line[0] != '\n'; peers->count++) {
        struct sockaddr_storage *more = reallocarray(*addresses, peers->count + 1, sizeof *more);

        if (more == NULL)
            return err_set(err, -ENOMEM, "out of memory");
        peers->addresses = *addresses = more;
        line[strcspn(line, "\n")] = '\0';
        rc = address_parse(line, &more[peers->count], err);
        if (memcmp(&more[peers->count], own, sizeof *own) != 0)
            continue;
        peers->self = peers->count;
        found = true;
    }
    if (rc == 0 && !found)
        return err_set(err, -EINVAL,
                       "the nodes' addresses on standard input lack this node's own address");
    return rc;
}

static void report(json_t *answered, FILE *out)
{
    struct kernel_sync_status clock = {0};
    struct timespec now;
    json_t *record;

    kernel_sync_read(&clock);
    clock_gettime(CLOCK_REALTIME, &now);
    record = json_pack("{s:O, s:I, s:b, s:I}", "answered", answered, "realtime_ns",
                       (json_int_t)(now.tv_sec * NS_PER_S + now.tv_nsec), "synchronized",
                       clock.synchronized, "max_error_ns", (json_int_t)clock.maxerror_ns);
    json_dumpf(record, out, JSON_COMPACT);
    json_decref(record);
    fputc('\n', out);
    fflush(out);
}

int control_check(const char *address, FILE *in, FILE *out, struct err *err)
{
    static const struct blob here;
    struct control_conf conf = {.netns = NULL};
    struct control_peers peers = {.run_id = "reach"};
    struct sockaddr_storage *addresses = NULL;
    struct control *control = NULL;
    int64_t begin_ns = clock_now();
    bool reported = false;
    int rc = address_parse(address, &conf.address, err);

    if (rc == 0)
        rc = control_open(&control, &conf, err);
    if (rc == 0)
        rc = read_peers(in, &conf.address, &peers, &addresses, err);
    if (rc == 0)
        rc = control_join(control, &peers, err);
    if (rc == 0)
        rc = control_publish(control, 0, &here);
    /* Answer requests until `in` ends: partners may send them later than this node does. */
    while (rc == 0) {
        struct pollfd waits[] = {{.fd = control_fd(control), .events = POLLIN},
                                 {.fd = fileno(in), .events = POLLIN}};
        json_t *answered = json_array(); /* places of the nodes that have answered */
        struct blob blob;

        for (uint32_t i = 0; i < peers.count; i++)
            if (control_fetch(control, i, 0, &blob, clock_now()) == 0)
                json_array_append_new(answered, json_integer(i));
        if (!reported && (json_array_size(answered) == peers.count ||
                          clock_now() - begin_ns > REQUEST_TIME_NS)) {
            report(answered, out);
            reported = true;
        }
        json_decref(answered);
        (void)poll(waits, 2, TURN_MS);
        control_work(control, clock_now());
        if (waits[1].revents != 0 && fgetc(in) == EOF)
            break;
    }
    control_close(control);
    free(addresses);
    return rc == -ENODATA ? 0 : rc;
}
