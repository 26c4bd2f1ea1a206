/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loop of the main thread: documents, control datagrams, events of workers, and reasons to end.
 */
#include "node.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define BY_HAND_BEAT_NS (100 * NS_PER_MS)
/* In a barrier a node polls for datagrams for this time after the last one, before it sleeps in the
 * kernel: partners that are there answer within microseconds, and a wake-up takes several. On
 * shared cores the node yields between two polls. A barrier with a longer wait, because partners
 * were busy, halves the time for the next barrier; other barriers double it. */
#define SPIN_SLEEP_NS (300 * NS_PER_US)
#define SPIN_POLL_NS (1000 * NS_PER_US)
#define SPIN_LEAST_NS (10 * NS_PER_US)
#define TURN_MOST_NS (100 * NS_PER_MS)
/* Maximum total time of polling, as a multiple: the node's loop handles more than datagrams. */
#define SPIN_TIMES_MOST 10

const char *node_name_of(const struct node *node, uint32_t index)
{
    return index < node->job->nodes_count ? node->job->nodes[index].name : "?";
}

static int end_run(struct node *node, enum node_end end)
{
    if (node->end == NODE_GOES_ON)
        node->end = end;
    for (size_t i = 0; i < node->worker_count; i++)
        worker_stop(node->workers[i]);
    return -ECANCELED;
}

int node_fail(struct node *node, int code)
{
    if (node->status == 0)
        node->status = err_status(code);
    end_run(node, NODE_ERROR);
    if (node->joined && node->end == NODE_ERROR) /* at once: records and lanes take time to end */
        control_abort(node->control, node->err.text, node->status == 2, clock_now());
    return -ECANCELED;
}

/* Report, once, the fault of the node that is missing or gave up. */
static void report_fault(struct node *node, const struct control_fault *fault)
{
    const char *who = node_name_of(node, fault->node);
    int status = fault->impossible ? 2 : 3; /* the status of the node that gave up */
    char text[400];

    if (!fault->missing)
        snprintf(text, sizeof text, "%s aborted the run: %s", who, fault->text);
    else if (fault->last_epoch == UINT32_MAX)
        snprintf(text, sizeof text,
                 "%s did not reach barrier %u within %u ms; it has never answered", who,
                 fault->epoch, node->job->barrier_timeout_ms);
    else
        snprintf(text, sizeof text,
                 "%s did not reach barrier %u within %u ms; its last datagram arrived %.1f s ago, "
                 "at barrier %u",
                 who, fault->epoch, node->job->barrier_timeout_ms, (double)fault->silence_ns / 1e9,
                 fault->last_epoch);
    log_error("%s", text);
    record_write(node->records, "missing",
                 RECORD_ROWS({"missing_node", json_string(who)},
                             {"gave_up", json_boolean(!fault->missing)},
                             {"text", json_string(text)}, {"status", json_integer(status)}));
    if (node->status == 0)
        node->status = status;
}

/* Send or check heartbeats. By hand, node 0 sends them to all nodes; a controller sends them on
 * standard input. */
static void check_heartbeat(struct node *node, int64_t now_ns)
{
    int64_t limit_ns = node->job->heartbeat_timeout_ms * NS_PER_MS;

    if (!node->joined || node->end != NODE_GOES_ON || limit_ns == 0)
        return;
    if (!node->job->controlled && node->self == 0) {
        if (now_ns - node->beat_ns < BY_HAND_BEAT_NS)
            return;
        control_beat(node->control, now_ns);
        node->beat_ns = now_ns;
    } else if (!node->job->controlled) {
        if (!node->ready) /* no traffic yet, and node 0 may be started late */
            return;
        node->beat_ns = MAX(node->beat_ns, control_last_beat_ns(node->control));
    }
    if (now_ns - node->beat_ns > limit_ns && !node->leaving) {
        log_error("no heartbeat of the controller for %u ms: this node stops",
                  node->job->heartbeat_timeout_ms);
        end_run(node, NODE_HEARTBEAT_TIMEOUT);
    }
}

int node_turn(struct node *node, int64_t until_ns)
{
    return node_poll(node, until_ns, -1);
}

int node_poll(struct node *node, int64_t until_ns, int fd)
{
    struct pollfd fds[] = {
        {.fd = node->signal_fd, .events = POLLIN},
        {.fd = node->event_fd, .events = POLLIN},
        {.fd = input_ended(node->input) ? -1 : node->input_fd, .events = POLLIN},
        {.fd = node->control != NULL ? control_fd(node->control) : -1, .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };
    int64_t now_ns = clock_now(), left_ns = MIN(until_ns - now_ns, TURN_MOST_NS);
    struct timespec left;
    struct signalfd_siginfo info;
    uint64_t events;

    if (node->control != NULL)
        left_ns = MIN(left_ns, control_deadline(node->control) - now_ns);
    left = (struct timespec){.tv_nsec = MAX(left_ns, 0)};
    ppoll(fds, sizeof fds / sizeof fds[0], &left, NULL);
    while (fds[0].revents != 0 && read(node->signal_fd, &info, sizeof info) == sizeof info) {
        log_info("received signal %u: this node stops", info.ssi_signo);
        end_run(node, NODE_SIGNAL);
    }
    if (fds[1].revents != 0)
        (void)!read(node->event_fd, &events, sizeof events);
    if (fds[2].revents != 0) {
        bool controlled = node->job != NULL && node->job->controlled;

        if (input_read(node->input, &node->err) < 0)
            node_fail(node, -EINVAL);
        else if (controlled)
            node->beat_ns = clock_now(); /* any document shows that the controller is alive */
        if (input_ended(node->input) && controlled && !node->leaving)
            end_run(node, NODE_END_OF_INPUT);
    }
    if (node->control != NULL) {
        control_work(node->control, clock_now());
        check_heartbeat(node, clock_now());
        if (node->joined && node->end == NODE_GOES_ON && control_fault(node->control) != NULL) {
            report_fault(node, control_fault(node->control));
            end_run(node, NODE_PEER);
        }
    }
    if (records_broken(node->records) && node->end == NODE_GOES_ON)
        node_fail(node,
                  err_set(&node->err, -EIO, "standard output can't be written: records are lost"));
    return node->end == NODE_GOES_ON ? 0 : -ECANCELED;
}

/* Read the next document that is no heartbeat. Return 1; 0: no document has arrived yet;
 * -ECANCELED: the run must end. */
static int next_document(struct node *node, struct document **document)
{
    int rc;

    while ((rc = input_next(node->input, document, &node->err)) > 0) {
        if ((*document)->kind != DOCUMENT_BEAT)
            return 1;
        node->beat_ns = clock_now();
        document_free(*document);
    }
    return rc < 0 ? node_fail(node, -EINVAL) : 0;
}

/* Handle the end of the input while no trial runs. A job file may end without a quit, and a
 * controller may end at once after its quit. */
static int end_of_input(struct node *node)
{
    bool quits = node->joined && !node->job->controlled;
    struct document *document;

    if (next_document(node, &document) > 0) {
        quits = document->kind == DOCUMENT_QUIT;
        document_free(document);
    }
    if (node->end == NODE_END_OF_INPUT)
        node->end = NODE_GOES_ON;
    return end_run(node, quits ? NODE_QUIT : NODE_END_OF_INPUT);
}

int node_await_document(struct node *node, struct document **document)
{
    int rc;

    while ((rc = next_document(node, document)) == 0) {
        if (input_ended(node->input))
            return end_of_input(node);
        rc = node_turn(node, CLOCK_NEVER);
        if (rc < 0)
            return node->end == NODE_END_OF_INPUT ? end_of_input(node) : rc;
    }
    if (rc > 0 && (*document)->kind == DOCUMENT_QUIT) {
        document_free(*document);
        return end_run(node, NODE_QUIT);
    }
    return rc < 0 ? rc : 0;
}

void set_thread_priority(struct node *node, bool claims)
{
    enum cores_precedence precedence = CORES_AS_OTHERS;

    if (!node->cores.sleeps)
        return;
    if (claims)
        precedence = control_clocks(node->control).crowded ? CORES_AT_ONCE : CORES_IN_TIME;
    (void)reserve_cores(precedence);
}

/* Poll for datagrams and answer them, until the barrier is over or no datagram has come for
 * spin_ns. If the barrier is not over then, the caller waits in node_turn(). */
static enum barrier_state spin_in_barrier(struct node *node)
{
    int64_t now_ns = clock_now();
    int64_t until_ns = now_ns + node->spin_ns;
    int64_t most_ns = now_ns + SPIN_TIMES_MOST * node->spin_ns;
    enum barrier_state state = control_barrier_state(node->control, NULL);

    while (now_ns < until_ns && now_ns < most_ns && state == BARRIER_WAITING) {
        if (control_work(node->control, now_ns) > 0)
            until_ns = now_ns + node->spin_ns;
        state = control_barrier_state(node->control, NULL);
        if (node->cores.sleeps && state == BARRIER_WAITING)
            sched_yield();
        now_ns = clock_now();
    }
    return state;
}

int node_barrier(struct node *node, struct barrier_values *values)
{
    int64_t spin_most_ns = node->cores.sleeps ? SPIN_SLEEP_NS : SPIN_POLL_NS;
    struct barrier_values nothing;
    int64_t longest_ns = 0;
    int rc;

    barrier_values_clear(&nothing);
    values = values != NULL ? values : &nothing;
    control_barrier_enter(node->control, values, clock_now());
    while (spin_in_barrier(node) == BARRIER_WAITING) {
        int64_t waits_ns = clock_now();

        rc = node_turn(node, CLOCK_NEVER);
        if (rc < 0)
            return rc;
        waits_ns = clock_now() - waits_ns;
        longest_ns = MAX(longest_ns, waits_ns);
    }
    node->spin_ns = longest_ns > spin_most_ns ? node->spin_ns / 2 : node->spin_ns * 2;
    node->spin_ns = MIN(MAX(node->spin_ns, SPIN_LEAST_NS), spin_most_ns);
    if (control_barrier_state(node->control, values) == BARRIER_PASSED)
        return 0;
    rc = node_turn(node, clock_now());
    return rc < 0 ? rc : end_run(node, NODE_PEER);
}
