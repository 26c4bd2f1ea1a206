/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switchbench-node: documents in, records out (doc/node-protocol.md). main reads like the data's
 * way: job, ports, peers, trials, end.
 */
#include "bind.h"
#include "clock.h"
#include "control_check.h"
#include "environment.h"
#include "event_loop.h"
#include "job.h"
#include "join.h"
#include "log.h"
#include "netns.h"
#include "node.h"
#include "plan_printer.h"
#include "port_binding.h"
#include "ports.h"
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
    const char *file; /* NULL: standard input */
    const char *name;
    const char *netns;
    const char *connection; /* NULL: the environment has it, or nobody */
    bool plan;
    bool restore;
    bool bind;
    struct bind_request lend; /* its devices point into the arguments */
    const char *journal;
    const char *reach; /* the control address that is tried; NULL: a run */
};

static const char usage[] =
    "usage: switchbench-node [FILE] [--name NAME] [--netns NAME] [--plan] [--version] [--help]\n"
    "       switchbench-node --bind ADDRESS... --driver DRIVER [--hugepages N] [--journal FILE]\n"
    "       switchbench-node --restore [--journal FILE]\n"
    "\n"
    "One node of a Switchbench run: reads YAML documents from FILE or standard input, sends and\n"
    "receives as they say, writes one JSON record a line to standard output.\n"
    "\n"
    "  --name NAME    this node's name in the job (default: the host's name)\n"
    "  --netns NAME   enter this network namespace first\n"
    "  --connection SSH_CONNECTION\n"
    "                 where the controller sits, when the environment does not say (sudo)\n"
    "  --plan         print the plan of a `plan` document and send nothing\n"
    "  --bind         give PCI network devices to DPDK (doc/bind.md), by vfio-pci, "
    "uio_pci_generic\n"
    "                 or igb_uio; with N hugepages of 2 MiB reserved for the time\n"
    "  --restore      give everything back as the journal has it (" BIND_JOURNAL ")\n"
    "  --reach ADDRESS:PORT\n"
    "                 try who is heard on this control address (switchbench doctor)\n"
    "\n"
    "The documents and records are described in doc/node-protocol.md. By hand at two hosts:\n"
    "  switchbench plan CONF --job job.yaml      # once; copy job.yaml to both, mode 0600\n"
    "  switchbench-node job.yaml --name node1    # on each, with its own name\n";

static int check_lend(struct options *options, char **devices, size_t count, struct err *err)
{
    options->lend.devices = (const char *const *)devices;
    options->lend.count = count;
    if (options->bind && options->restore)
        return err_set(err, -EINVAL, "--bind or --restore, not both");
    if (options->restore && count > 0)
        return err_set(err, -EINVAL, "--restore gives back all that the journal has: no addresses");
    if (options->bind && (count == 0 || options->lend.driver == NULL))
        return err_set(err, -EINVAL, "--bind wants PCI addresses, and --driver");
    return 0;
}

/* Where the text of an option goes; NULL: it is not kept as it is. */
static const char **text_of(struct options *options, int option)
{
    switch (option) {
    case 'n':
        return &options->name;
    case 's':
        return &options->netns;
    case 'c':
        return &options->connection;
    case 'd':
        return &options->lend.driver;
    case 'j':
        return &options->journal;
    case 'e':
        return &options->reach;
    default:
        return NULL;
    }
}

static int parse_options(int argc, char **argv, struct options *options, struct err *err)
{
    static const struct option known[] = {
        {"name", required_argument, NULL, 'n'},
        {"netns", required_argument, NULL, 's'},
        {"connection", required_argument, NULL, 'c'},
        {"plan", no_argument, NULL, 'p'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {"bind", no_argument, NULL, 'b'},
        {"restore", no_argument, NULL, 'r'},
        {"driver", required_argument, NULL, 'd'},
        {"journal", required_argument, NULL, 'j'},
        {"reach", required_argument, NULL, 'e'},
        {"hugepages", required_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    const char **text;
    int option;
    char more;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        text = text_of(options, option);
        if (text != NULL) {
            *text = optarg;
            continue;
        }
        switch (option) {
        case 'p':
            options->plan = true;
            break;
        case 'b':
            options->bind = true;
            break;
        case 'r':
            options->restore = true;
            break;
        case 'g':
            if (sscanf(optarg, "%u%c", &options->lend.hugepages, &more) != 1)
                return err_set(err, -EINVAL, "--hugepages wants a number, not '%s'", optarg);
            break;
        case 'v':
            puts("switchbench-node " SWITCHBENCH_VERSION);
            exit(0);
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            return err_set(err, -EINVAL, "see switchbench-node --help");
        }
    }
    if (options->bind || options->restore)
        return check_lend(options, argv + optind, (size_t)(argc - optind), err);
    if (argc - optind > 1)
        return err_set(err, -EINVAL, "one job file at most, not %d", argc - optind);
    options->file = argv[optind];
    return 0;
}

/* The guard of ports and of devices asks the environment (ports.c, bind/kernel.c). */
static int note_connection(const struct options *options, struct err *err)
{
    if (options->connection == NULL || setenv("SSH_CONNECTION", options->connection, 1) == 0)
        return 0;
    return err_set(err, -errno, "can't keep --connection: %s", strerror(errno));
}

/* With file capabilities it has more rights than whoever has set its environment. */
static int distrust_environment(struct err *err)
{
    int rc = getauxval(AT_SECURE) != 0 ? environment_clean() : 0;

    return rc < 0 ? err_set(err, rc, "can't clean the environment: %s", strerror(-rc)) : 0;
}

/* --- devices lent to DPDK and given back, without a run --- */

static void print_sentence(void *data, const char *sentence)
{
    (void)data;
    printf("%s\n", sentence);
}

/* A change that is half done is ended, or taken back, before a signal counts. */
static int lend_by_hand(const struct options *options, struct err *err)
{
    const struct bind_place place = {
        .root = "",
        .journal = options->journal != NULL ? options->journal : BIND_JOURNAL,
        .kernel = &bind_kernel,
        .say = print_sentence,
    };
    sigset_t all;
    int rc;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    rc = options->bind ? bind_devices(&place, &options->lend, err) : bind_restore(&place, err);
    if (rc == BIND_ALREADY)
        puts("All of them are bound already, by an earlier --bind; its journal is kept.");
    return rc < 0 ? rc : 0;
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
    /* A loader that was given the program (bundle/start.c) has left its own name. */
    prctl(PR_SET_NAME, "switchbench-node");
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

/* --- the run --- */

/* Until the run ends: node->end says why. */
static void run_trials(struct node *node)
{
    static const struct err misplaced = {"after peers come only trials and quit"};
    struct document *document;

    while (node_await_document(node, &document) == 0) {
        int rc = document_kind(document) == DOCUMENT_TRIAL ? trial_run(node, document->trial)
                                                           : node_fail(node, 2, &misplaced);

        document_free(document);
        if (rc < 0)
            return;
    }
}

static const char *const end_words[] = {
    [NODE_QUIT] = "quit",     [NODE_END_OF_INPUT] = "end-of-input",
    [NODE_SIGNAL] = "signal", [NODE_DEADMAN] = "deadman",
    [NODE_PEER] = "peer",     [NODE_ERROR] = "error",
};

/* All nodes go through one more barrier, so that none leaves while another still needs it. */
static void pass_last_barrier(struct node *node)
{
    struct barrier_values values;

    node_no_values(&values);
    node->leaving = true;
    node->end = NODE_GOES_ON;
    if (node_barrier(node, &values) == 0)
        node->end = NODE_QUIT;
}

/* No node leaves alone: it tells the others why, or goes through the last barrier with them. The
 * endpoint answers late partners for a while when it is closed, and ports take their time to close:
 * so it comes first. */
static void leave(struct node *node)
{
    const char *why = node->err.text[0] != '\0' ? node->err.text : end_words[node->end];

    if (node->joined && node->end == NODE_QUIT)
        pass_last_barrier(node);
    else if (node->joined && node->end != NODE_PEER)
        control_abort(node->control, why, node->status == 2, clock_now());
    if (node->control != NULL)
        node->dropped_datagrams = control_dropped(node->control);
    control_close(node->control);
    node->control = NULL;
    node->joined = false;
}

/* A counter and a clock that drift apart: one of them is wrong, and so is every rate. */
static void report_drift(struct node *node, double drift_ppm)
{
    json_t *record = record_new(node->records, "event");
    char text[160];

    snprintf(
        text, sizeof text,
        "the CPU's counter and the kernel's raw clock drifted apart by %.1f ppm: all times and "
        "rates of this node may be wrong by as much",
        drift_ppm);
    log_warning("%s", text);
    record_set_text(record, "what", "clock-drift");
    record_set_text(record, "port", NULL);
    record_set_text(record, "text", text);
    record_send(node->records, record);
}

static void set_clocks(struct node *node, json_t *record, bool known,
                       const struct tsc_report *clocks)
{
    record_set_count(record, "tsc_hz", node->tsc.hz > 0 ? (int64_t)node->tsc.hz : -1);
    json_object_set_new(record, "tsc_drift_ppm",
                        known ? json_real(clocks->drift_ppm) : json_null());
    json_object_set_new(record, "clock_slew_ppm",
                        known ? json_real(clocks->slew_ppm) : json_null());
}

static void say_bye(struct node *node)
{
    struct tsc_report clocks;
    bool known = tsc_check(&node->tsc, &clocks);
    json_t *record;

    if (known && fabs(clocks.drift_ppm) > TSC_DRIFT_PPM)
        report_drift(node, clocks.drift_ppm);

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
    json_object_set_new(record, "dropped_datagrams",
                        json_integer((json_int_t)node->dropped_datagrams));
    json_object_set_new(record, "dropped_records",
                        json_integer((json_int_t)records_dropped(node->records)));
    set_clocks(node, record, known, &clocks);
    record_send(node->records, record);
}

/* 0, or -EPIPE when records could not be written. */
static int tear_down(struct node *node)
{
    int rc;

    ports_close(node);
    for (size_t i = 0; i < node->worker_count; i++)
        worker_end(node->workers[i]);
    rc = records_close(node->records);
    input_close(node->input);
    document_free(node->job_document);
    free(node->ports);
    free(node->places);
    sodium_memzero(node->secret.key, sizeof node->secret.key);
    return rc;
}

/* What has failed is said, and asks for another exit status than all's well. */
static void give_back(struct node *node)
{
    ports_close(node);
    if (lend_end(node) < 0 && node->status == 0)
        node->status = 3;
}

static int run_node(struct node *node)
{
    int rc = job_read(node);

    if (rc == 0) {
        node->run.run_id = node->secret.run_id = node->job->run;
        node->run.node = node->name;
        rc = job_start_workers(node);
    }
    if (rc == 0)
        rc = ports_survey(node);
    if (rc == 0)
        rc = join_open_control(node);
    if (rc == 0)
        rc = join_run(node);
    if (rc == 0)
        run_trials(node);
    leave(node);
    give_back(node);
    if (node->status == 0 && node->end != NODE_QUIT)
        node->status = 3;
    say_bye(node);
    return node->status;
}

/* A plan has no partners who would have to be told: a signal ends it at once. */
static void unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int print_plan(struct node *node, struct err *err)
{
    struct document *document = NULL;
    int rc = node_await_document(node, &document);

    if (rc < 0)
        return node->err.text[0] != '\0' ? err_set(err, rc, "%s", node->err.text)
                                         : err_set(err, -EINVAL, "no plan document");
    if (document_kind(document) != DOCUMENT_PLAN) {
        rc = err_set(err, -EINVAL, "--plan wants a plan document");
    } else {
        unblock_signals();
        rc = plan_print(node->records, document->plan, err);
    }
    document_free(document);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct node node = {.signal_fd = -1, .event_fd = -1, .held_fd = -1};
    struct err err = {0};
    int status;
    int rc = parse_options(argc, argv, &options, &err);

    if (rc == 0)
        rc = distrust_environment(&err);
    if (rc == 0)
        rc = note_connection(&options, &err);
    if (rc == 0 && (options.bind || options.restore || options.reach != NULL)) {
        rc = options.reach != NULL ? reach_try(options.reach, stdin, stdout, &err)
                                   : lend_by_hand(&options, &err);
        if (rc < 0)
            fprintf(stderr, "switchbench-node: %s\n", err.text);
        return rc < 0 ? node_status_for(rc) : 0;
    }
    tsc_begin(&node.tsc);
    if (rc == 0)
        rc = set_up(&node, &options, &err);
    if (rc < 0)
        status = 2;
    else if (!options.plan)
        status = run_node(&node);
    else if ((rc = print_plan(&node, &err)) < 0)
        status = node.status != 0 ? node.status : node_status_for(rc);
    else
        status = 0;
    if (err.text[0] != '\0')
        fprintf(stderr, "switchbench-node: %s\n", err.text);
    if (tear_down(&node) < 0 && status == 0)
        status = 3;
    return status;
}
