/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Joining a run: hello with a fresh X25519 key, peers with the run's key sealed to it, the first
 * barrier, ready.
 */
#include "join.h"

#include "address.h"
#include "clock.h"
#include "document_reader.h"
#include "event_loop.h"
#include "node.h"
#include "sysfs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCK_WAIT_NS NS_PER_S

#define BOOT_BYTES 8 /* of the boot id's hash, in hello */

static int open_control(struct node *node, struct err *err)
{
    const struct doc_node *self = &node->job->nodes[node->self];
    struct control_conf conf = {
        .netns = self->control.netns,
        .barrier_timeout_ns = node->job->barrier_timeout_ms * NS_PER_MS,
        .clock = node->job->clock,
    };
    const char *address = self->control.address != NULL ? self->control.address : "0.0.0.0:0";
    int rc = address_parse(address, &conf.address, err);

    return rc == 0 ? control_open(&node->control, &conf, err) : rc;
}

/* Which machine this is, for whoever adds up the CPU time of machines: host names repeat. "" when
 * the kernel does not say. The id itself stays at home. */
static void hash_boot(char *text, size_t size)
{
    uint8_t hash[crypto_generichash_BYTES_MIN];
    char id[64];

    text[0] = '\0';
    if (!sysfs_line(id, sizeof id, "/proc/sys/kernel/random/boot_id"))
        return;
    crypto_generichash(hash, sizeof hash, (const uint8_t *)id, strlen(id), NULL, 0);
    sodium_bin2hex(text, size, hash, BOOT_BYTES);
}

static void say_hello(struct node *node, const uint8_t public_key[crypto_box_PUBLICKEYBYTES])
{
    struct sockaddr_storage address;
    char key[sodium_base64_ENCODED_LEN(crypto_box_PUBLICKEYBYTES, sodium_base64_VARIANT_ORIGINAL)];
    char text[ADDRESS_TEXT_MAX];
    char boot[2 * BOOT_BYTES + 1];
    char host[64] = "";

    control_address(node->control, &address);
    address_format(&address, text, sizeof text);
    sodium_bin2base64(key, sizeof key, public_key, crypto_box_PUBLICKEYBYTES,
                      sodium_base64_VARIANT_ORIGINAL);
    gethostname(host, sizeof host - 1);
    hash_boot(boot, sizeof boot);
    const struct record_row rows[] = {
        {"protocol", json_integer(NODE_PROTOCOL)},
        {"version", json_string(SWITCHBENCH_VERSION)},
        {"host", json_string(host)},
        {"boot", boot[0] != '\0' ? json_string(boot) : json_null()},
        {"pid", json_integer(getpid())},
        {"control", json_string(text)},
        {"key", json_string(key)},
        {"cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN))},
        {"workers", json_integer((json_int_t)node->worker_count)},
        {"worker", json_string(node->cores.sleeps ? "sleep" : "poll")},
        {"cores", record_numbers(node->cores.core, node->worker_count)},
        {"ports", json_integer((json_int_t)node->port_count)},
        {NULL, NULL},
    };
    record_write(node->records, "hello", rows);
}

static int open_key(struct node *node, const struct doc_peers *doc, const uint8_t *public_key,
                    const uint8_t *secret_key, struct err *err)
{
    uint8_t sealed[crypto_box_SEALBYTES + TRANSPORT_KEY_BYTES];
    size_t length = 0;

    if (doc->key != NULL) {
        if (sodium_hex2bin(node->secret.key, sizeof node->secret.key, doc->key, strlen(doc->key),
                           NULL, &length, NULL) != 0 ||
            length != sizeof node->secret.key ||
            sodium_is_zero(node->secret.key, sizeof node->secret.key))
            return err_set(err, -EINVAL, "peers.key must be %d hex digits, not all of them 0",
                           2 * TRANSPORT_KEY_BYTES);
        return 0;
    }
    if (doc->sealed_keys_count <= node->self)
        return err_set(err, -EINVAL, "peers: no key for node %u", node->self);
    if (sodium_base642bin(sealed, sizeof sealed, doc->sealed_keys[node->self],
                          strlen(doc->sealed_keys[node->self]), NULL, &length, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        length != sizeof sealed ||
        crypto_box_seal_open(node->secret.key, sealed, sizeof sealed, public_key, secret_key) !=
            0 ||
        sodium_is_zero(node->secret.key, sizeof node->secret.key))
        return err_set(err, -EBADMSG, "peers: the key for %s was not sealed to its hello",
                       node->name);
    return 0;
}

static int join_control(struct node *node, const struct doc_peers *doc, struct err *err)
{
    struct sockaddr_storage *addresses = calloc(node->job->nodes_count, sizeof *addresses);
    struct control_peers peers = {
        .self = node->self,
        .count = node->job->nodes_count,
        .addresses = addresses,
        .run_id = node->job->run,
    };
    int rc = 0;

    if (addresses == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    if (doc->addresses_count != peers.count)
        rc = err_set(err, -EINVAL, "peers: %u addresses for %u nodes", doc->addresses_count,
                     peers.count);
    for (uint32_t i = 0; i < peers.count && rc == 0; i++)
        rc = address_parse(doc->addresses[i], &addresses[i], err);
    memcpy(peers.key, node->secret.key, sizeof peers.key);
    if (rc == 0)
        rc = control_join(node->control, &peers, err);
    sodium_memzero(peers.key, sizeof peers.key);
    free(addresses);
    return rc;
}

/* Why this node knows run time as it does. */
static const char *clock_reason(const struct node *node, const struct control_clocks *clocks)
{
    if (node->job->clock.mode != CLOCK_AUTO)
        return "asked for";
    if (clocks->one_clock)
        return "boot ids are equal";
    return clocks->with_node_0 ? "time namespaces differ" : "boot ids differ";
}

static void say_ready(struct node *node)
{
    struct control_clocks clocks = control_clocks(node->control);
    struct control_clock now = control_clock(node->control);
    struct timespec wall;
    char id[17];

    clock_gettime(CLOCK_REALTIME, &wall);
    snprintf(id, sizeof id, "%016" PRIx64, clocks.id);
    const struct record_row rows[] = {
        {"clock", json_string(clock_mode_name(clocks.mode))},
        {"clock_reason", json_string(clock_reason(node, &clocks))},
        {"clock_id", json_string(id)},
        {"clock_offset_ns", now.bound_ns < 0 ? json_null() : json_integer(now.offset_ns)},
        {"clock_bound_ns", record_count(now.bound_ns)},
        /* What was found can be looked up in others' logs. */
        {"wall_clock_offset_ns",
         json_integer((int64_t)wall.tv_sec * NS_PER_S + wall.tv_nsec - clock_now())},
        {NULL, NULL},
    };
    record_write(node->records, "ready", rows);
}

static bool is_refused(struct node *node)
{
    enum clock_mode asked = node->job->clock.mode;

    return (asked == CLOCK_SHARED && !control_clocks(node->control).one_clock) ||
           (asked == CLOCK_PTP && control_clock(node->control).bound_ns < 0);
}

/* The offset to node 0's clock takes some questions and answers more. A node that gets none runs
 * without a common clock, and says so. */
static int await_clock(struct node *node)
{
    int64_t deadline_ns = clock_now() + CLOCK_WAIT_NS;
    int rc = 0;

    while (rc == 0 && clock_now() < deadline_ns &&
           (!control_clock_settled(node->control) || control_clock(node->control).bound_ns < 0) &&
           !is_refused(node))
        rc = node_turn(node, clock_now() + 5 * NS_PER_MS);
    return rc;
}

/* The clocks are not what the run asks for. */
static int check_clock(struct node *node)
{
    struct control_clocks clocks = control_clocks(node->control);
    const char *first = node_name_of(node, 0);
    struct err err = {0};

    if (!is_refused(node))
        return 0;
    if (node->job->clock.mode == CLOCK_PTP)
        err_set(&err, -EINVAL,
                "clock: ptp, but the kernel of %s calls its clock not synchronized: start chronyd, "
                "or ptp4l and phc2sys, there and wait until it is settled, or say clock: estimated",
                node->name);
    else if (clocks.with_node_0)
        err_set(
            &err, -EINVAL,
            "clock: shared, but %s and %s are in different time namespaces, whose clocks differ "
            "(/proc/self/timens_offsets): start them in one, or say clock: estimated",
            node->name, first);
    else
        err_set(&err, -EINVAL,
                "clock: shared, but %s and %s are different machines (their boot ids differ): say "
                "clock: estimated, or ptp where their kernels' clocks are synchronized",
                node->name, first);
    return node_fail(node, 2, &err);
}

int join_run(struct node *node)
{
    uint8_t public_key[crypto_box_PUBLICKEYBYTES];
    uint8_t secret_key[crypto_box_SECRETKEYBYTES];
    struct barrier_values values;
    struct document *document = NULL;
    struct err err = {0};
    int rc = open_control(node, &err);

    if (rc < 0)
        return node_fail(node, 2, &err);
    crypto_box_keypair(public_key, secret_key);
    say_hello(node, public_key);
    rc = node_await_document(node, &document);
    if (rc == 0) {
        if (document_kind(document) != DOCUMENT_PEERS)
            rc = err_set(&err, -EINVAL, "after the job must come peers");
        if (rc == 0)
            rc = open_key(node, document->peers, public_key, secret_key, &err);
        if (rc == 0)
            rc = join_control(node, document->peers, &err);
        node->joined = rc == 0;
        rc = rc < 0 ? node_fail(node, 2, &err) : 0;
    }
    sodium_memzero(secret_key, sizeof secret_key);
    document_free(document);
    node->beat_ns = clock_now();
    barrier_values_clear(&values);
    if (rc == 0)
        rc = node_barrier(node, &values);
    if (rc < 0)
        return rc;
    node->ready = true;
    node->beat_ns = clock_now();
    rc = await_clock(node);
    if (rc == 0)
        rc = check_clock(node);
    if (rc == 0)
        say_ready(node);
    return rc;
}
