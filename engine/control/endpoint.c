/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Socket of the control endpoint. It receives datagrams, verifies their seals and passes them to
 * the state machines; it stamps, seals and sends the datagrams that these produce. It also chooses
 * the clock that gives run time, reads the kernel's clock status, and asks the parent for time
 * stamps, from which run_clock.h estimates the offset.
 */
#include "endpoint.h"

#include "address.h"
#include "backoff.h"
#include "log.h"
#include "membership.h"
#include "netns.h"
#include "sysfs.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <search.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READS_MAX 1024 /* a flood of datagrams must not occupy the caller's thread for ever */
#define SOCKET_BUFFER_BYTES (1 << 20)
/* At the end a node answers its partners until no datagram came for longer than their back-off. */
#define LINGER_QUIET_NS (5 * BACKOFF_MOST_NS / 2)
#define LINGER_MOST_NS NS_PER_S
/* Requests for time stamps that this node sends to its parent, if the parent has another clock:
 * some quickly at first, then one for each slot of run_clock.h. Each answer triggers a second
 * request: a core that has just slept takes a while to wake, and the second request finds both
 * cores awake. Each pair costs four datagrams of 96 bytes. */
#define PINGS_QUICK 16
#define PING_QUICK_NS (5 * NS_PER_MS)

/* Blob that this node has published, requested or fetched. */
struct blob_entry {
    uint32_t node; /* publisher of the blob */
    uint64_t id;   /* name of the blob, chosen by the publisher */
    bool is_here;
    int64_t asked_ns;       /* time of the first request */
    struct backoff backoff; /* until the next request */
    struct blob blob;
};

struct control {
    int fd;
    struct control_conf conf;
    struct sockaddr_in6 *addresses; /* address of each node, with room for IPv6; NULL: not joined */
    struct membership membership;
    /* Trees of tsearch(3): entries by node and id, for the trial and for the phase. */
    void *blobs[2];
    struct run_clock clock;
    struct control_clocks clocks; /* with mode CLOCK_AUTO: unknown so far */
    uint32_t pings;
    int64_t ping_ns; /* due time of the next ping */
    bool asks_again; /* whether a second question follows the answer */
    uint64_t dropped;
    int send_errno; /* last error that was logged */
};

/* --- sending --- */

/* Stamp, seal and send a datagram. The first two stamps are the echo of RFC 5905: the recipient's
 * last transmit time, and its arrival time here. */
static void stamp_and_send(void *context, struct datagram *datagram)
{
    struct control *control = context;
    struct membership *membership = &control->membership;
    const struct neighbour *neighbour = membership_neighbour(membership, datagram->recipient);
    struct offset_estimate root = {0, -1};
    uint8_t bytes[DATAGRAM_MAX];
    size_t size;

    if (datagram->type != DATAGRAM_BLOB) {
        datagram->origin_ns = neighbour != NULL ? neighbour->transmit_ns : DATAGRAM_NO_TIME;
        datagram->receive_ns = neighbour != NULL ? neighbour->receive_ns : DATAGRAM_NO_TIME;
    }
    if (membership_parent(datagram->recipient) == membership->conf.self)
        /* Other nodes do not use this node's clock. */
        root = run_clock_estimate(&control->clock, clock_now());
    datagram->transmit_ns = clock_now();
    datagram->root_offset_ns = root.offset_ns;
    datagram->root_bound_ns = root.bound_ns;
    size = datagram_write(datagram, membership->conf.key, bytes);
    if (sendto(control->fd, bytes, size, MSG_DONTWAIT,
               (const struct sockaddr *)&control->addresses[datagram->recipient],
               sizeof(control->addresses[0])) >= 0 ||
        errno == control->send_errno || errno == EAGAIN)
        return;
    control->send_errno = errno;
    log_warning("A control datagram to node %u can't be sent: %s.", datagram->recipient,
                strerror(errno));
}

static void ask_parent(struct control *control)
{
    struct datagram ping = {.type = DATAGRAM_PING,
                            .recipient = membership_parent(control->membership.conf.self),
                            .epoch = DATAGRAM_NONE};

    membership_send(&control->membership, &ping);
}

/* --- opening and joining --- */

int control_open(struct control **out, const struct control_conf *conf, struct err *err)
{
    const int bytes = SOCKET_BUFFER_BYTES;
    struct control *control = calloc(1, sizeof(*control));
    char text[ADDRESS_TEXT_MAX];
    int previous_fd = -1, code;

    *out = NULL;
    if (control == NULL)
        return err_set(err, -ENOMEM, "No memory for the control endpoint.");
    *control = (struct control){
        .fd = -1,
        .conf = *conf,
        .ping_ns = CLOCK_NEVER,
        .clock.disciplined.bound_ns = -1,
        .clocks = {.maxerror_ns = -1},
    };
    code = netns_enter(conf->netns, &previous_fd, err);
    if (code == 0)
        control->fd = socket(conf->address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (code == 0 && (control->fd < 0 || bind(control->fd, (const struct sockaddr *)&conf->address,
                                              sizeof(conf->address)) < 0))
        code = err_set(err, -errno, "the control address %s can't be used: %s",
                       address_text(&conf->address, text), strerror(errno));
    netns_leave(previous_fd);
    if (code < 0) {
        control_close(control);
        return code;
    }
    setsockopt(control->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    setsockopt(control->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    *out = control;
    return 0;
}

void control_address(const struct control *control, struct sockaddr_storage *address)
{
    socklen_t size = sizeof(*address);

    memset(address, 0, sizeof(*address));
    getsockname(control->fd, (struct sockaddr *)address, &size);
}

int control_fd(const struct control *control)
{
    return control->fd;
}

/* Return the hash of a file's first line, keyed with the run's key, since a boot id identifies a
 * machine. An unreadable file gets a random hash if `needed`, else the hash of an empty line. */
static uint32_t hash_line(const char *path, bool needed, const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint8_t hash[crypto_generichash_BYTES_MIN];
    char line[64] = "";
    uint32_t word;

    if (!sysfs_line(line, sizeof(line), "%s", path) && needed)
        randombytes_buf(line, sizeof(line));
    crypto_generichash(hash, sizeof(hash), (const uint8_t *)line, sizeof(line), key,
                       DATAGRAM_KEY_BYTES);
    memcpy(&word, hash, sizeof(word));
    return word;
}

int control_join(struct control *control, const struct control_peers *peers, struct err *err)
{
    sa_family_t family = control->conf.address.ss_family;
    uint64_t boot = hash_line("/proc/sys/kernel/random/boot_id", true, peers->key);
    uint64_t namespace = hash_line("/proc/self/timens_offsets", false, peers->key);
    struct membership_conf conf = {
        .self = peers->self,
        .count = peers->count,
        /* The identity of this CLOCK_MONOTONIC: its machine's boot, and its time namespace. */
        .boot = (int64_t)((boot << 32 | namespace) >> 1 | 1),
        .timeout_ns = control->conf.barrier_timeout_ns,
        .cores = sysconf(_SC_NPROCESSORS_ONLN),
        .send = stamp_and_send,
        .context = control,
    };

    for (uint32_t i = 0; i < peers->count; i++)
        if (i != peers->self && peers->addresses[i].ss_family != family)
            return err_set(err, -EAFNOSUPPORT,
                           "The control address of node %u is %s, and this node's is not: give all "
                           "nodes control addresses of one family.",
                           i, family == AF_INET ? "IPv6" : "IPv4");
    assert(peers->count > 0);
    control->addresses = calloc(peers->count, sizeof(*control->addresses));
    if (control->addresses == NULL)
        return err_set(err, -ENOMEM, "No memory for the addresses of %u nodes.", peers->count);
    for (uint32_t i = 0; i < peers->count; i++)
        memcpy(&control->addresses[i], &peers->addresses[i], sizeof(*control->addresses));
    datagram_key(conf.key, peers->key, peers->run_id, peers->count);
    while (conf.nonce == 0)
        randombytes_buf(&conf.nonce, sizeof(conf.nonce));
    run_clock_init(&control->clock, peers->self == 0);
    membership_start(&control->membership, &conf);
    sodium_memzero(&conf, sizeof(conf));
    return 0;
}

/* --- run time --- */

/* Read the kernel's offset and error bound of CLOCK_REALTIME; for clock mode ptp. */
static void ask_kernel(struct control *control)
{
    int64_t stated_ns = control->conf.clock.error_ns;
    struct kernel_sync_status kernel;

    kernel_sync_read(&kernel);
    control->clocks.maxerror_ns = kernel.maxerror_ns;
    control->clock.disciplined = (struct offset_estimate){kernel.offset_ns, -1};
    if (kernel.synchronized)
        control->clock.disciplined.bound_ns = stated_ns > 0 ? stated_ns : kernel.maxerror_ns;
}

/* Decide the clock mode of this node, and store the relation of its clock to node 0's; called once
 * the first barrier has passed. */
static void learn_clocks(struct control *control, int64_t now_ns)
{
    const struct membership *membership = &control->membership;
    int64_t boot = membership->conf.boot, root_boot = membership->root_boot;

    run_clock_decide(&control->clock, control->conf.clock.mode, root_boot == boot,
                     membership->conf.self == 0);
    control->clocks.mode = control->clock.mode;
    control->clocks.with_node_0 = root_boot >> 31 == boot >> 31;
    control->clocks.one_clock = root_boot == boot;
    control->clocks.crowded = membership->crowded;
    control->clocks.id = (uint64_t)boot;
    if (control->clock.mode == CLOCK_PTP)
        ask_kernel(control);
    if (!control->clock.is_root)
        control->ping_ns = now_ns;
}

struct offset_estimate control_clock_at(struct control *control, int64_t at_ns)
{
    if (control->clock.mode == CLOCK_PTP)
        ask_kernel(control);
    return run_clock_estimate(&control->clock, at_ns);
}

struct control_clocks control_clocks(const struct control *control)
{
    struct control_clocks clocks = control->clocks;

    clocks.settled =
        clocks.mode != CLOCK_AUTO && (control->clock.is_root || control->pings > PINGS_QUICK);
    return clocks;
}

/* --- blobs --- */

static int compare(const void *a, const void *b)
{
    const struct blob_entry *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static struct blob_entry *find_blob(const struct control *control, uint32_t node, uint64_t id)
{
    const struct blob_entry wanted = {.node = node, .id = id};
    struct blob_entry *const *found =
        tfind(&wanted, &control->blobs[(id & CONTROL_PHASE_BLOB) != 0], compare);

    return found != NULL ? *found : NULL;
}

/* Add an entry for a blob that the endpoint does not have yet; NULL: out of memory. */
static struct blob_entry *add_blob(struct control *control, uint32_t node, uint64_t id)
{
    struct blob_entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL)
        return NULL;
    entry->node = node;
    entry->id = id;
    if (tsearch(entry, &control->blobs[(id & CONTROL_PHASE_BLOB) != 0], compare) != NULL)
        return entry;
    free(entry);
    return NULL;
}

void control_forget(struct control *control, bool all)
{
    for (int phase = !all; phase < 2; phase++) {
        tdestroy(control->blobs[phase], free);
        control->blobs[phase] = NULL;
    }
}

int control_publish(struct control *control, uint64_t id, const struct blob *blob)
{
    uint32_t self = control->membership.conf.self;
    struct blob_entry *entry = find_blob(control, self, id);

    if (entry == NULL && (entry = add_blob(control, self, id)) == NULL)
        return -ENOMEM;
    entry->blob = *blob;
    entry->is_here = true;
    return 0;
}

int control_fetch(struct control *control, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns)
{
    struct datagram fetch = {
        .type = DATAGRAM_FETCH, .recipient = node, .epoch = DATAGRAM_NONE, .id = id};
    struct blob_entry *entry = find_blob(control, node, id);

    if (entry != NULL && entry->is_here) {
        *blob = entry->blob;
        return 0;
    }
    if (node == control->membership.conf.self)
        return -EAGAIN;
    if (entry == NULL) {
        entry = add_blob(control, node, id);
        if (entry == NULL)
            return -ENOMEM;
        entry->asked_ns = clock_now();
        backoff_start(&entry->backoff, now_ns);
    } else if (!backoff_due(&entry->backoff, now_ns)) {
        return -EAGAIN;
    }
    membership_send(&control->membership, &fetch);
    return -EAGAIN;
}

/* Answer a partner's request for a blob. Ignore a request for an unpublished blob, since the
 * partner repeats its request.
 */
static void answer_fetch(struct control *control, const struct datagram *fetch)
{
    const struct blob_entry *entry = find_blob(control, control->membership.conf.self, fetch->id);
    struct datagram answer = {
        .type = DATAGRAM_BLOB,
        .recipient = fetch->sender,
        .to = fetch->from,
        .epoch = DATAGRAM_NONE,
        .origin_ns = fetch->transmit_ns,
        .id = fetch->id,
    };

    if (entry == NULL)
        return;
    answer.blob = entry->blob;
    membership_send(&control->membership, &answer);
}

/* Store a requested blob. Return false if the blob was not requested, or answers another request.
 */
static bool take_blob(struct control *control, const struct datagram *answer)
{
    struct blob_entry *entry = find_blob(control, answer->sender, answer->id);

    if (answer->to != control->membership.conf.nonce || entry == NULL ||
        answer->origin_ns < entry->asked_ns)
        return false;
    if (!entry->is_here) /* else both the request and its repetition were answered */
        entry->blob = answer->blob;
    entry->is_here = true;
    return true;
}

/* --- receiving --- */

/* Handle a received datagram; return false if the datagram counts as dropped. */
static bool take(struct control *control, const uint8_t *bytes, size_t size, int64_t now_ns)
{
    struct membership *membership = &control->membership;
    uint32_t self = membership->conf.self;
    struct datagram datagram;

    if (!datagram_read(&datagram, bytes, size, membership->conf.key) ||
        datagram.recipient != self || datagram.sender >= membership->conf.count ||
        datagram.sender == self)
        return false;
    if (datagram.type == DATAGRAM_BLOB)
        return take_blob(control, &datagram);
    if (datagram.type == DATAGRAM_FETCH) { /* any node may ask */
        answer_fetch(control, &datagram);
        return true;
    }
    if (!membership_receive(membership, &datagram, now_ns))
        return false;
    if (self == 0 || datagram.sender != membership_parent(self) ||
        datagram.to != membership->conf.nonce)
        return true;
    run_clock_heard(&control->clock,
                    &(struct offset_stamps){datagram.origin_ns, datagram.receive_ns,
                                            datagram.transmit_ns, now_ns},
                    (struct offset_estimate){datagram.root_offset_ns, datagram.root_bound_ns});
    if (datagram.type == DATAGRAM_PONG && control->asks_again) {
        control->asks_again = false;
        ask_parent(control);
    }
    return true;
}

/* Read datagrams one by one, because a partner waits for each answer. Read the clock after the
 * system call: an arrival time before the true one would make the clock's bound wrong. */
unsigned control_work(struct control *control, int64_t now_ns)
{
    uint8_t bytes[DATAGRAM_MAX];
    unsigned read = 0;
    ssize_t size;

    while (read < READS_MAX &&
           (size = recv(control->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
        read++;
        if (control->addresses != NULL &&
            ((size_t)size > sizeof(bytes) || !take(control, bytes, (size_t)size, clock_now())))
            control->dropped++;
    }
    if (control->addresses == NULL)
        return read;
    membership_tick(&control->membership, now_ns);
    if (control->membership.met && control->clocks.mode == CLOCK_AUTO)
        learn_clocks(control, now_ns);
    if (now_ns >= control->ping_ns) {
        control->ping_ns =
            now_ns + (control->pings++ < PINGS_QUICK ? PING_QUICK_NS : RUN_CLOCK_SLOT_NS);
        control->asks_again = true;
        ask_parent(control);
    }
    return read;
}

int64_t control_deadline(const struct control *control)
{
    int64_t due_ns = control->addresses != NULL ? control->membership.backoff.due_ns : CLOCK_NEVER;

    return MIN(control->ping_ns, due_ns);
}

uint64_t control_dropped(const struct control *control)
{
    return control->dropped;
}

/* --- barrier, abort, heartbeat --- */

void control_barrier_enter(struct control *control, const struct barrier_values *mine,
                           int64_t now_ns)
{
    if (control->clocks.mode != CLOCK_AUTO && !control->clock.is_root)
        control->ping_ns = now_ns; /* the code after a barrier needs a fresh offset */
    membership_enter(&control->membership, mine, now_ns);
}

enum barrier_state control_barrier_state(const struct control *control, struct barrier_values *all)
{
    enum barrier_state state =
        control->addresses != NULL ? membership_state(&control->membership) : BARRIER_WAITING;

    if (state == BARRIER_PASSED && all != NULL)
        *all = *membership_values(&control->membership);
    return state;
}

const struct control_fault *control_fault(const struct control *control)
{
    return control->membership.aborted ? &control->membership.fault : NULL;
}

void control_abort(struct control *control, const char *text, bool impossible, int64_t now_ns)
{
    if (control->addresses != NULL)
        membership_abort(&control->membership, text, impossible, now_ns);
}

void control_beat(struct control *control, int64_t now_ns)
{
    if (control->membership.met && control->membership.conf.self == 0)
        membership_beat(&control->membership, now_ns);
}

int64_t control_last_beat_ns(const struct control *control)
{
    return control->membership.beat_ns;
}

/* --- closing --- */

/* Answer partners before the endpoint closes, as long as they may need answers. After a fault:
 * until all neighbours know the fault, or were sent it often enough. After a barrier: a partner
 * that lost this node's arrival asks for it within its back-off. */
static void linger(struct control *control)
{
    const struct membership *membership = &control->membership;
    int64_t start_ns = clock_now();

    for (int64_t now_ns = start_ns; now_ns - start_ns < LINGER_MOST_NS; now_ns = clock_now()) {
        struct pollfd readable = {.fd = control->fd, .events = POLLIN};
        int64_t wait_ns = MIN(control_deadline(control) - now_ns, 10 * NS_PER_MS);

        control_work(control, now_ns);
        if (membership->aborted ? membership->backoff.due_ns == CLOCK_NEVER
                                : membership_state(membership) != BARRIER_PASSED ||
                                      now_ns >= membership->active_ns + LINGER_QUIET_NS)
            return;
        poll(&readable, 1, wait_ns > 0 ? (int)(wait_ns / NS_PER_MS) + 1 : 0);
    }
}

void control_close(struct control *control)
{
    if (control == NULL)
        return;
    if (control->addresses != NULL && control->membership.conf.count > 1)
        linger(control);
    if (control->fd >= 0)
        close(control->fd);
    control_forget(control, true);
    free(control->addresses);
    sodium_memzero(control, sizeof(*control)); /* for the keys */
    free(control);
}
