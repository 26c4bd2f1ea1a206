/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From the job document to the first barrier: find this node and all ports of the run in the job,
 * start the workers, send hello with a new X25519 key, read peers with the run's key sealed to it,
 * pass the first barrier, and send ready.
 */
#include "node.h"

#include "address.h"
#include "clock.h"
#include "log.h"
#include "sysfs.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCK_WAIT_NS NS_PER_S
#define BOOT_BYTES 8 /* of the boot id's hash, in hello */

/* --- the job --- */

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const struct port_location *)a)->name, ((const struct port_location *)b)->name);
}

const struct port_location *node_find_port(const struct node *node, const char *name)
{
    struct port_location wanted = {.name = name};

    return bsearch(&wanted, node->places, node->place_count, sizeof wanted, compare_places);
}

static int index_places(struct node *node)
{
    const struct doc_job *job = node->job;
    size_t count = 0;

    for (uint32_t n = 0; n < job->nodes_count; n++)
        count += job->nodes[n].ports_count;
    node->places = calloc(count + 1, sizeof *node->places);
    if (node->places == NULL)
        return err_set(&node->err, -ENOMEM, "out of memory");
    for (uint32_t n = 0; n < job->nodes_count; n++)
        for (uint32_t p = 0; p < job->nodes[n].ports_count; p++)
            node->places[node->place_count++] =
                (struct port_location){job->nodes[n].ports[p].conf.name, n, p};
    qsort(node->places, node->place_count, sizeof *node->places, compare_places);
    for (size_t i = 1; i < node->place_count; i++)
        if (strcmp(node->places[i - 1].name, node->places[i].name) == 0)
            return err_set(&node->err, -EINVAL, "job: duplicate port name %s",
                           node->places[i].name);
    return 0;
}

static int read_job(struct node *node)
{
    const struct doc_node *self = NULL;
    int rc = node_await_document(node, &node->job_document);

    if (rc < 0)
        return rc;
    if (node->job_document->kind != DOCUMENT_JOB)
        return err_set(&node->err, -EINVAL, "the first document must be a job");
    node->job = node->job_document->job;
    node->run.run_id = node->secret.run_id = node->job->run;
    node->run.node = node->name;
    node->beat_ns = clock_now();
    for (uint32_t n = 0; n < node->job->nodes_count; n++)
        if (strcmp(node->job->nodes[n].name, node->name) == 0) {
            self = &node->job->nodes[n];
            node->self = n;
        }
    if (self == NULL)
        return err_set(&node->err, -EINVAL,
                       "job: there is no node %s: set this node's name with --name", node->name);
    node->port_count = self->ports_count;
    node->ports = calloc(node->port_count + 1, sizeof *node->ports);
    if (node->ports == NULL)
        return err_set(&node->err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < node->port_count; i++)
        node->ports[i].doc = &self->ports[i];
    return index_places(node);
}

/* Set the number of queues of each port, and start the workers. The number is the port's setting,
 * or follows from the number of cores. A PCI device may have fewer queues; a kernel interface or a
 * pipe gets one. */
static int start_workers(struct node *node)
{
    const struct doc_node *self = &node->job->nodes[node->self];
    struct core usable[CORES_MAX];
    int lanes[CORES_LANES_MAX] = {-1}; /* NUMA node of each queue */
    struct cores_ask ask = {
        .policy = node->job->worker,
        .usable = usable,
        .usable_count = cores_usable(usable, self->cores_count > 0),
        .named = self->cores,
        .named_count = self->cores_count,
        .lanes = lanes,
    };
    int rc;

    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];
        const char *pci = port->doc->conf.pci;

        port->conf = port->doc->conf;
        port->conf.queues_at_most = port->conf.queues == 0;
        if (port->conf.queues == 0)
            port->conf.queues = pci != NULL ? cores_queues(&ask, node->port_count) : 1;
        port->first_lane = node->lane_count;
        node->lane_count += port->conf.queues;
        for (size_t lane = port->first_lane; lane < node->lane_count && lane < CORES_LANES_MAX;
             lane++)
            lanes[lane] =
                pci != NULL ? (int)sysfs_number(-1, "/sys/bus/pci/devices/%s/numa_node", pci) : -1;
    }
    ask.lane_count = node->lane_count > 0 ? node->lane_count : 1;
    rc = cores_choose(&node->cores, &ask, &node->err);
    if (rc == 0)
        cores_yield(&node->cores);
    for (size_t i = 0; i < node->cores.workers && rc == 0; i++) {
        struct worker_conf conf = {
            .sleeps = node->cores.sleeps,
            .core = node->cores.core[i],
            .event_fd = node->event_fd,
            .seed = randombytes_random(),
        };

        rc = worker_start(&node->workers[i], &conf, &node->err);
        node->worker_count += rc == 0;
    }
    return rc;
}

/* --- hello --- */

static int say_hello(struct node *node, const uint8_t public_key[crypto_box_PUBLICKEYBYTES])
{
    const struct doc_node *self = &node->job->nodes[node->self];
    struct control_conf conf = {
        .netns = self->control_netns,
        .barrier_timeout_ns = node->job->barrier_timeout_ms * NS_PER_MS,
        .clock = node->job->clock,
    };
    char key[sodium_base64_ENCODED_LEN(crypto_box_PUBLICKEYBYTES, sodium_base64_VARIANT_ORIGINAL)];
    char text[ADDRESS_TEXT_MAX], boot[2 * BOOT_BYTES + 1] = "", id[64], host[64] = "";
    uint8_t hash[crypto_generichash_BYTES_MIN];
    struct sockaddr_storage address;
    int rc = address_parse(self->control_address != NULL ? self->control_address : "0.0.0.0:0",
                           &conf.address, &node->err);

    if (rc == 0)
        rc = control_open(&node->control, &conf, &node->err);
    if (rc < 0)
        return rc;
    control_address(node->control, &address);
    sodium_bin2base64(key, sizeof key, public_key, crypto_box_PUBLICKEYBYTES,
                      sodium_base64_VARIANT_ORIGINAL);
    gethostname(host, sizeof host - 1);
    /* A hash of the boot id identifies the machine, to add up CPU time per machine: host names may
     * be equal. The id itself is not sent. */
    if (sysfs_line(id, sizeof id, "/proc/sys/kernel/random/boot_id")) {
        crypto_generichash(hash, sizeof hash, (const uint8_t *)id, strlen(id), NULL, 0);
        sodium_bin2hex(boot, sizeof boot, hash, BOOT_BYTES);
    }
    record_write(node->records, "hello",
                 RECORD_ROWS({"protocol", json_integer(NODE_PROTOCOL)},
                             {"version", json_string(SWITCHBENCH_VERSION)},
                             {"host", json_string(host)}, {"boot", record_text(boot)},
                             {"pid", json_integer(getpid())},
                             {"control", json_string(address_text(&address, text))},
                             {"key", json_string(key)},
                             {"cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN))},
                             {"workers", json_integer((json_int_t)node->worker_count)},
                             {"worker", json_string(node->cores.sleeps ? "sleep" : "poll")},
                             {"cores", record_numbers(node->cores.core, node->worker_count)},
                             {"ports", json_integer((json_int_t)node->port_count)}));
    return 0;
}

/* --- peers --- */

/* Read the run's key from the peers document: in plain text (a run started by hand), or sealed with
 * the public key of this node's hello. */
static int open_key(struct node *node, const struct doc_peers *doc, const uint8_t *public_key,
                    const uint8_t *secret_key)
{
    uint8_t *key = node->secret.key, sealed[crypto_box_SEALBYTES + TRANSPORT_KEY_BYTES];
    size_t length = 0;

    if (doc->key != NULL) {
        if (sodium_hex2bin(key, TRANSPORT_KEY_BYTES, doc->key, strlen(doc->key), NULL, &length,
                           NULL) != 0 ||
            length != TRANSPORT_KEY_BYTES || sodium_is_zero(key, TRANSPORT_KEY_BYTES))
            return err_set(&node->err, -EINVAL,
                           "peers.key must be %d hex digits, not all of them 0",
                           2 * TRANSPORT_KEY_BYTES);
        return 0;
    }
    if (doc->sealed_keys_count <= node->self)
        return err_set(&node->err, -EINVAL, "peers: no key for node %u", node->self);
    if (sodium_base642bin(sealed, sizeof sealed, doc->sealed_keys[node->self],
                          strlen(doc->sealed_keys[node->self]), NULL, &length, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        length != sizeof sealed ||
        crypto_box_seal_open(key, sealed, sizeof sealed, public_key, secret_key) != 0 ||
        sodium_is_zero(key, TRANSPORT_KEY_BYTES))
        return err_set(&node->err, -EBADMSG,
                       "peers: the key for node %s can't be decrypted: it was encrypted for "
                       "another hello record",
                       node->name);
    return 0;
}

static int join_peers(struct node *node, const struct doc_peers *doc)
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
        return err_set(&node->err, -ENOMEM, "out of memory");
    if (doc->addresses_count != peers.count)
        rc = err_set(&node->err, -EINVAL,
                     "peers: found %u addresses for %u nodes: each node needs one",
                     doc->addresses_count, peers.count);
    for (uint32_t i = 0; i < peers.count && rc == 0; i++)
        rc = address_parse(doc->addresses[i], &addresses[i], &node->err);
    memcpy(peers.key, node->secret.key, sizeof peers.key);
    if (rc == 0)
        rc = control_join(node->control, &peers, &node->err);
    node->joined = rc == 0;
    sodium_memzero(peers.key, sizeof peers.key);
    free(addresses);
    return rc;
}

/* --- the common clock, ready --- */

/* Wait until the offset to node 0's clock is measured, which takes some exchanges. A node without
 * an offset continues without a common clock, and reports this. With clock mode ptp, fail if the
 * kernel has no error bound. */
static int await_clock(struct node *node)
{
    int64_t deadline_ns = clock_now() + CLOCK_WAIT_NS;
    int rc = 0;

    while (rc == 0 && clock_now() < deadline_ns) {
        bool known = control_clock_at(node->control, clock_now()).bound_ns >= 0;

        if (node->job->clock.mode == CLOCK_PTP && !known)
            return err_set(
                &node->err, -EINVAL,
                "clock: ptp, but the kernel of %s reports an unsynchronized clock: start chronyd, "
                "or ptp4l and phc2sys, there and wait until the clock is synchronized, or set "
                "clock: estimated",
                node->name);
        if (known && control_clocks(node->control).settled)
            break;
        rc = node_turn(node, clock_now() + 5 * NS_PER_MS);
    }
    return rc;
}

static void say_ready(struct node *node)
{
    struct control_clocks clocks = control_clocks(node->control);
    struct offset_estimate now = control_clock_at(node->control, clock_now());
    const char *reason = node->job->clock.mode != CLOCK_AUTO ? "asked for"
                         : clocks.one_clock                  ? "boot ids are equal"
                         : clocks.with_node_0                ? "time namespaces differ"
                                                             : "boot ids differ";
    struct timespec wall;
    char id[17];

    clock_gettime(CLOCK_REALTIME, &wall);
    snprintf(id, sizeof id, "%016" PRIx64, clocks.id);
    record_write(node->records, "ready",
                 RECORD_ROWS({"clock", json_string(clock_words[clocks.mode])},
                             {"clock_reason", json_string(reason)}, {"clock_id", json_string(id)},
                             {"clock_offset_ns",
                              now.bound_ns < 0 ? json_null() : json_integer(now.offset_ns)},
                             {"clock_bound_ns", record_count(now.bound_ns)},
                             /* Events can be found in logs of other programs by wall clock time. */
                             {"wall_clock_offset_ns", json_integer((int64_t)wall.tv_sec * NS_PER_S +
                                                                   wall.tv_nsec - clock_now())}));
}

int join_run(struct node *node)
{
    uint8_t public_key[crypto_box_PUBLICKEYBYTES], secret_key[crypto_box_SECRETKEYBYTES];
    struct document *document = NULL;
    int rc = read_job(node);

    if (rc == 0) {
        rc = start_workers(node);
        if (rc < 0)
            return node_fail(node, rc);
    }
    if (rc == 0)
        rc = ports_survey(node);
    crypto_box_keypair(public_key, secret_key);
    if (rc == 0)
        rc = say_hello(node, public_key);
    if (rc == 0)
        rc = node_await_document(node, &document);
    if (rc == 0 && document->kind != DOCUMENT_PEERS)
        rc = err_set(&node->err, -EINVAL, "the document after the job must be of type peers");
    if (rc == 0)
        rc = open_key(node, document->peers, public_key, secret_key);
    if (rc == 0)
        rc = join_peers(node, document->peers);
    sodium_memzero(secret_key, sizeof secret_key);
    document_free(document);
    node->beat_ns = clock_now();
    if (rc == 0)
        rc = node_barrier(node, NULL);
    if (rc == 0) {
        node->ready = true;
        node->beat_ns = clock_now();
        rc = await_clock(node);
    }
    if (rc == 0)
        say_ready(node);
    return rc == 0 || rc == -ECANCELED ? rc : node_fail(node, -EINVAL);
}
