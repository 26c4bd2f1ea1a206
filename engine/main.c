/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switchbench-node: documents in, records out (doc/node-protocol.md). main reads like the data's
 * way: job, ports, peers, trials, end.
 */
#include "clock.h"
#include "log.h"
#include "netns.h"
#include "node.h"
#include "plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINGER_NS (100 * NS_PER_MS) /* a late partner's last datagrams are still answered */

struct options {
    const char *file; /* NULL: standard input */
    const char *name;
    const char *netns;
    bool plan;
};

static const char usage[] =
    "usage: switchbench-node [FILE] [--name NAME] [--netns NAME] [--plan] [--version] [--help]\n"
    "\n"
    "One node of a Switchbench run: reads YAML documents from FILE or standard input, sends and\n"
    "receives as they say, writes one JSON record a line to standard output.\n"
    "\n"
    "  --name NAME    this node's name in the job (default: the host's name)\n"
    "  --netns NAME   enter this network namespace first\n"
    "  --plan         print the plan of a `plan` document and send nothing\n"
    "\n"
    "The documents and records are described in doc/node-protocol.md. By hand at two hosts:\n"
    "  switchbench plan CONF --job job.yaml      # once; copy job.yaml to both, mode 0600\n"
    "  switchbench-node job.yaml --name node1    # on each, with its own name\n";

static int parse_options(int argc, char **argv, struct options *options, struct err *err)
{
    static const struct option known[] = {
        {"name", required_argument, NULL, 'n'}, {"netns", required_argument, NULL, 's'},
        {"plan", no_argument, NULL, 'p'},       {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'n':
            options->name = optarg;
            break;
        case 's':
            options->netns = optarg;
            break;
        case 'p':
            options->plan = true;
            break;
        case 'v':
            puts("switchbench-node " VERSION);
            exit(0);
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            return err_set(err, -EINVAL, "see switchbench-node --help");
        }
    }
    if (argc - optind > 1)
        return err_set(err, -EINVAL, "one job file at most, not %d", argc - optind);
    options->file = argv[optind];
    return 0;
}

/* --- by hand: a file of documents --- */

/* A job file holds the run's key: nobody else may read it. */
static int open_file(const char *path, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, -errno, "can't read %s: %s", path, strerror(errno));
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
        close(fd);
        return err_set(err, -EPERM, "%s holds a key and others may read it: chmod 600 %s", path,
                       path);
    }
    return fd;
}

/* --- setting up --- */

static int block_signals(struct node *node, struct err *err)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    node->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    node->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (node->signal_fd < 0 || node->event_fd < 0)
        return err_set(err, -errno, "can't wait for signals: %s", strerror(errno));
    return 0;
}

static int set_up(struct node *node, const struct options *options, struct err *err)
{
    static char host[64];
    int previous;
    int rc;

    gethostname(host, sizeof host - 1);
    node->name = options->name != NULL ? options->name : host;
    log_setup(node->name, LOG_LEVEL_INFO);
    if (sodium_init() < 0)
        return err_set(err, -ENOSYS, "libsodium can't be initialised");
    if (options->netns != NULL && (rc = netns_enter(options->netns, &previous, err)) < 0)
        return rc;
    rc = block_signals(node, err);
    if (rc == 0)
        rc = records_open(&node->records, STDOUT_FILENO, node->name, err);
    if (rc < 0)
        return rc;
    node->input_fd = options->file != NULL ? open_file(options->file, err) : STDIN_FILENO;
    if (node->input_fd < 0)
        return node->input_fd;
    rc = input_open(&node->input, node->input_fd, options->file != NULL || options->plan, err);
    return rc;
}

/* --- the job --- */

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const struct node_place *)a)->name, ((const struct node_place *)b)->name);
}

static int index_places(struct node *node, struct err *err)
{
    const struct doc_job *job = node->job;
    size_t count = 0;

    for (uint32_t n = 0; n < job->nodes_count; n++)
        count += job->nodes[n].ports_count;
    node->places = calloc(count + 1, sizeof *node->places);
    if (node->places == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t n = 0; n < job->nodes_count; n++)
        for (uint32_t p = 0; p < job->nodes[n].ports_count; p++)
            node->places[node->place_count++] =
                (struct node_place){job->nodes[n].ports[p].conf.name, n, p};
    qsort(node->places, node->place_count, sizeof *node->places, compare_places);
    for (size_t i = 1; i < node->place_count; i++)
        if (strcmp(node->places[i - 1].name, node->places[i].name) == 0)
            return err_set(err, -EINVAL, "job: two ports are called %s", node->places[i].name);
    return 0;
}

static int find_self(struct node *node, struct err *err)
{
    const struct doc_job *job = node->job;
    const struct doc_node *self = NULL;

    for (uint32_t n = 0; n < job->nodes_count; n++) {
        if (strcmp(job->nodes[n].name, node->name) == 0) {
            self = &job->nodes[n];
            node->self = n;
        }
    }
    if (self == NULL)
        return err_set(err, -EINVAL, "job: no node is called %s: give --name", node->name);
    node->port_count = self->ports_count;
    node->ports = calloc(node->port_count + 1, sizeof *node->ports);
    if (node->ports == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < node->port_count; i++)
        node->ports[i].doc = &self->ports[i];
    return 0;
}

static int read_job(struct node *node)
{
    struct err err = {0};
    enum log_level level = LOG_LEVEL_INFO;
    int rc = node_await_document(node, &node->job_document);

    if (rc < 0)
        return rc;
    if (document_kind(node->job_document) != DOCUMENT_JOB) {
        err_set(&err, -EINVAL, "the first document must be a job");
        return node_fail(node, 2, &err);
    }
    node->job = node->job_document->job;
    node->by_hand = !node->job->controlled;
    node->beat_ns = clock_now();
    if (node->job->log != NULL && log_level_parse(node->job->log, &level) < 0)
        err_set(&err, -EINVAL, "job.log: '%s' is not one of error, warning, info, debug",
                node->job->log);
    log_setup(node->name, level);
    if (node->job->barrier_timeout_ms == 0)
        node->job_document->job->barrier_timeout_ms = 5000;
    if (err.text[0] == '\0' && find_self(node, &err) == 0)
        index_places(node, &err);
    return err.text[0] != '\0' ? node_fail(node, 2, &err) : 0;
}

/* --- workers --- */

/* Cores of its own: only where there are more cores than workers, and nobody said otherwise. */
static bool workers_sleep(const struct node *node, size_t workers)
{
    if (node->job->worker != WORKER_AUTO)
        return node->job->worker == WORKER_SLEEP;
    return sysconf(_SC_NPROCESSORS_ONLN) < (long)workers + 2;
}

static int start_workers(struct node *node)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = node->port_count > 0 ? node->port_count : 1;
    struct err err = {0};
    int rc = 0;

    if (count > (size_t)(cores > 2 ? cores - 1 : 1))
        count = (size_t)(cores > 2 ? cores - 1 : 1);
    if (node->job->worker == WORKER_SLEEP)
        count = 1;
    if (count > NODE_WORKERS_MAX)
        count = NODE_WORKERS_MAX;
    node->sleeps = workers_sleep(node, count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct worker_conf conf = {
            .sleeps = node->sleeps,
            .core = node->sleeps ? -1 : (int)(cores - 1 - (long)i),
            .event_fd = node->event_fd,
            .seed = randombytes_random(),
        };

        rc = worker_start(&node->workers[i], &conf, &err);
        node->worker_count += rc == 0;
    }
    return rc < 0 ? node_fail(node, 3, &err) : 0;
}

/* --- joining --- */

static int parse_address(const char *text, struct sockaddr_storage *address, struct err *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2] = "";
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    char *end = NULL;
    unsigned long port = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    bool bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';

    memset(address, 0, sizeof *address);
    if (colon == NULL || *end != '\0' || end == colon + 1 || port > 65535 || length >= sizeof host)
        return err_set(err, -EINVAL, "'%s' is not an address and port (192.0.2.1:7600)", text);
    memcpy(host, text + bracketed, length - 2 * (size_t)bracketed);
    if (bracketed && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return 0;
    }
    if (!bracketed && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return 0;
    }
    return err_set(err, -EINVAL, "'%s' is not an address and port (192.0.2.1:7600)", text);
}

static void format_address(const struct sockaddr_storage *address, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    char host[INET6_ADDRSTRLEN] = "";

    if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, size, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(text, size, "%s:%u", host, ntohs(v4->sin_port));
    }
}

static int open_control(struct node *node)
{
    const struct doc_node *self = &node->job->nodes[node->self];
    struct control_conf conf = {
        .netns = self->control.netns,
        .barrier_timeout_ns = node->job->barrier_timeout_ms * NS_PER_MS,
    };
    struct err err = {0};
    const char *address = self->control.address != NULL ? self->control.address : "0.0.0.0:0";
    int rc = parse_address(address, &conf.address, &err);

    if (rc == 0)
        rc = control_open(&node->control, &conf, &err);
    return rc < 0 ? node_fail(node, 2, &err) : 0;
}

static void say_hello(struct node *node, const uint8_t public_key[crypto_box_PUBLICKEYBYTES])
{
    json_t *record = record_new(node->records, "hello");
    struct sockaddr_storage address;
    char key[sodium_base64_ENCODED_LEN(crypto_box_PUBLICKEYBYTES, sodium_base64_VARIANT_ORIGINAL)];
    char text[64];
    char host[64] = "";

    control_address(node->control, &address);
    format_address(&address, text, sizeof text);
    sodium_bin2base64(key, sizeof key, public_key, crypto_box_PUBLICKEYBYTES,
                      sodium_base64_VARIANT_ORIGINAL);
    gethostname(host, sizeof host - 1);
    json_object_set_new(record, "protocol", json_integer(NODE_PROTOCOL));
    json_object_set_new(record, "version", json_string(VERSION));
    json_object_set_new(record, "host", json_string(host));
    json_object_set_new(record, "pid", json_integer(getpid()));
    json_object_set_new(record, "control", json_string(text));
    json_object_set_new(record, "key", json_string(key));
    json_object_set_new(record, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(record, "workers", json_integer((json_int_t)node->worker_count));
    json_object_set_new(record, "worker", json_string(node->sleeps ? "sleep" : "poll"));
    json_object_set_new(record, "ports", json_integer((json_int_t)node->port_count));
    record_send(node->records, record);
}

static int open_key(struct node *node, const struct doc_peers *doc, const uint8_t *public_key,
                    const uint8_t *secret_key, struct err *err)
{
    uint8_t sealed[crypto_box_SEALBYTES + TRANSPORT_KEY_BYTES];
    size_t length = 0;

    if (doc->key != NULL) {
        if (sodium_hex2bin(node->run.key, sizeof node->run.key, doc->key, strlen(doc->key), NULL,
                           &length, NULL) != 0 ||
            length != sizeof node->run.key)
            return err_set(err, -EINVAL, "peers.key must be %d hex digits",
                           2 * TRANSPORT_KEY_BYTES);
        return 0;
    }
    if (doc->sealed_keys_count <= node->self)
        return err_set(err, -EINVAL, "peers: no key for node %u", node->self);
    if (sodium_base642bin(sealed, sizeof sealed, doc->sealed_keys[node->self],
                          strlen(doc->sealed_keys[node->self]), NULL, &length, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        length != sizeof sealed ||
        crypto_box_seal_open(node->run.key, sealed, sizeof sealed, public_key, secret_key) != 0)
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
        rc = parse_address(doc->addresses[i], &addresses[i], err);
    memcpy(peers.key, node->run.key, sizeof peers.key);
    if (rc == 0)
        rc = control_join(node->control, &peers, err);
    sodium_memzero(peers.key, sizeof peers.key);
    free(addresses);
    return rc;
}

static void say_ready(struct node *node)
{
    struct control_clock now = control_clock(node->control);
    json_t *record = record_new(node->records, "ready");

    json_object_set_new(record, "clock_offset_ns",
                        now.bound_ns < 0 ? json_null() : json_integer(now.offset_ns));
    record_set_count(record, "clock_bound_ns", now.bound_ns);
    record_send(node->records, record);
}

/* Hello, peers, the first barrier. */
static int join(struct node *node)
{
    uint8_t public_key[crypto_box_PUBLICKEYBYTES];
    uint8_t secret_key[crypto_box_SECRETKEYBYTES];
    struct barrier_values values = {.states = 0};
    struct document *document = NULL;
    struct err err = {0};
    int rc;

    crypto_box_keypair(public_key, secret_key);
    say_hello(node, public_key);
    rc = node_await_document(node, &document);
    if (rc < 0)
        goto cleanup;
    if (document_kind(document) != DOCUMENT_PEERS)
        rc = err_set(&err, -EINVAL, "after the job must come peers");
    if (rc == 0)
        rc = open_key(node, document->peers, public_key, secret_key, &err);
    if (rc == 0)
        rc = join_control(node, document->peers, &err);
    if (rc < 0) {
        rc = node_fail(node, 2, &err);
        goto cleanup;
    }
    node->joined = true;
    node->beat_ns = clock_now();
    for (size_t i = 0; i < BARRIER_MAXIMA; i++)
        values.maximum[i] = INT64_MIN;
    rc = node_barrier(node, &values);
    if (rc == 0)
        say_ready(node);
cleanup:
    sodium_memzero(secret_key, sizeof secret_key);
    document_free(document);
    return rc;
}

/* --- the run --- */

static int run_trials(struct node *node)
{
    struct document *document;
    struct err err = {0};
    int rc;

    for (;;) {
        rc = node_await_document(node, &document);
        if (rc < 0)
            return rc;
        if (document_kind(document) == DOCUMENT_TRIAL)
            rc = trial_run(node, document->trial);
        else
            rc = err_set(&err, -EINVAL, "after peers come only trials and quit");
        document_free(document);
        if (err.text[0] != '\0')
            return node_fail(node, 2, &err);
        if (rc < 0)
            return rc;
    }
}

static void linger(struct node *node)
{
    int64_t until_ns = clock_now() + LINGER_NS;

    while (clock_now() < until_ns) {
        int64_t deadline_ns = control_deadline(node->control);

        control_work(node->control, clock_now());
        deadline_ns = deadline_ns < clock_now() + NS_PER_MS ? deadline_ns : clock_now() + NS_PER_MS;
        clock_sleep_until(deadline_ns);
    }
}

static const char *const end_words[] = {
    [NODE_GOES_ON] = "quit",  [NODE_QUIT] = "quit",       [NODE_END_OF_INPUT] = "end-of-input",
    [NODE_SIGNAL] = "signal", [NODE_DEADMAN] = "deadman", [NODE_PEER] = "peer",
    [NODE_ERROR] = "error",
};

/* No node leaves alone: it tells the others why, or goes through the last barrier with them. */
static void leave(struct node *node)
{
    struct barrier_values values = {.states = 0};
    enum node_end end = node->end;
    char text[256];

    if (!node->joined)
        return;
    if (end == NODE_QUIT) {
        node->end = NODE_GOES_ON;
        for (size_t i = 0; i < BARRIER_MAXIMA; i++)
            values.maximum[i] = INT64_MIN;
        if (node_barrier(node, &values) == 0)
            node->end = NODE_QUIT;
    } else if (end != NODE_PEER) {
        snprintf(text, sizeof text, "%.255s",
                 node->err.text[0] != '\0' ? node->err.text : end_words[end]);
        control_abort(node->control, text, clock_now());
    }
    linger(node);
}

static void say_bye(struct node *node)
{
    json_t *record;

    if (node->err.text[0] != '\0') {
        log_error("%s", node->err.text);
        record = record_new(node->records, "error");
        json_object_set_new(record, "text", json_string(node->err.text));
        json_object_set_new(record, "status", json_integer(node->status));
        record_send(node->records, record);
    }
    record = record_new(node->records, "bye");
    json_object_set_new(record, "status", json_integer(node->status));
    json_object_set_new(record, "reason", json_string(end_words[node->end]));
    json_object_set_new(
        record, "dropped_datagrams",
        json_integer(node->control != NULL ? (json_int_t)control_dropped(node->control) : 0));
    json_object_set_new(record, "dropped_records",
                        json_integer((json_int_t)records_dropped(node->records)));
    record_send(node->records, record);
}

static void tear_down(struct node *node)
{
    ports_close(node);
    for (size_t i = 0; i < node->worker_count; i++)
        worker_end(node->workers[i]);
    control_close(node->control);
    records_close(node->records);
    input_close(node->input);
    document_free(node->job_document);
    free(node->ports);
    free(node->places);
    sodium_memzero(node->run.key, sizeof node->run.key);
}

static int run_node(struct node *node)
{
    int rc = read_job(node);

    if (rc == 0) {
        node->run.run_id = node->job->run;
        node->run.node = node->name;
        rc = start_workers(node);
    }
    if (rc == 0)
        rc = ports_survey(node);
    if (rc == 0)
        rc = open_control(node);
    if (rc == 0)
        rc = join(node);
    if (rc == 0)
        run_trials(node);
    leave(node);
    if (node->status == 0 && node->end != NODE_QUIT)
        node->status = 3;
    if (node->status == 3 && node->by_hand && node->end == NODE_END_OF_INPUT)
        node->status = 0; /* a job file may end without quit */
    say_bye(node);
    return node->status;
}

static int print_plan(struct node *node, struct err *err)
{
    struct document *document = NULL;
    int rc = node_await_document(node, &document);

    if (rc < 0)
        return node->err.text[0] != '\0' ? err_set(err, rc, "%s", node->err.text)
                                         : err_set(err, -EINVAL, "no plan document");
    if (document_kind(document) != DOCUMENT_PLAN)
        rc = err_set(err, -EINVAL, "--plan wants a plan document");
    else
        rc = plan_print(node->records, document->plan, err);
    document_free(document);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct node node = {.signal_fd = -1, .event_fd = -1};
    struct err err = {0};
    int status;
    int rc = parse_options(argc, argv, &options, &err);

    if (rc == 0)
        rc = set_up(&node, &options, &err);
    if (rc < 0)
        status = 2;
    else if (options.plan)
        status = (rc = print_plan(&node, &err)) < 0 ? 2 : 0;
    else
        status = run_node(&node);
    if (err.text[0] != '\0')
        fprintf(stderr, "switchbench-node: %s\n", err.text);
    tear_down(&node);
    return status;
}
