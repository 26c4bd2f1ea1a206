/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The socket under the state machines: reads, judges the seal, hands on; stamps, seals, sends. And
 * the clock: which one run time goes by, and the questions to the parent that estimate its offset
 * (run_clock.h judges; what is asked of the kernel and of the parent is here).
 */
#include "endpoint.h"

#include "blob_store.h"
#include "clock.h"
#include "datagram.h"
#include "kernel_sync_status.h"
#include "log.h"
#include "membership.h"
#include "netns.h"
#include "run_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READS_MAX 1024 /* a flood of datagrams must not keep the caller's thread for ever */
#define SOCKET_BUFFER_BYTES (1 << 20)
/* At the end a node answers its partners until all was quiet for longer than their back-off. */
#define LINGER_QUIET_NS (5 * BACKOFF_MOST_NS / 2)
#define LINGER_MOST_NS NS_PER_S
/* Clock questions to the parent, where its clock is another: some quickly at first; then for each
 * slot of offset_filter.h. The answer is asked another at once: a core that has just slept takes a
 * while to wake, the parent's longer than ours, and the second question finds both awake. Four
 * datagrams of 88 bytes in all. */
#define PINGS_QUICK 16
#define PING_QUICK_NS (5 * NS_PER_MS)
#define PING_SLOW_NS OFFSET_SLOT_NS
#define SAME_BOOT(a, b) ((a) >> 31 == (b) >> 31)

/* As sockaddr_storage, but 28 bytes: there is one for each of up to 65,536 nodes. */
union address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* What came in last: its answer echoes its time stamps. */
struct incoming {
    uint32_t sender;
    int64_t transmit_ns;
    int64_t arrive_ns;
};

struct control {
    int fd;
    int family;
    int64_t timeout_ns;
    struct clock_conf clock_conf;
    bool joined;
    bool clocks_known;
    union address *addresses;
    struct membership membership;
    struct blob_store blob_store;
    struct run_clock clock;
    struct kernel_sync_status kernel; /* ptp */
    uint32_t pings;
    int64_t ping_ns; /* when the next is due */
    bool asks_again; /* once the answer is there */
    struct incoming incoming;
    int64_t beat_ns;      /* when the last heartbeat came */
    int64_t beat_said_ns; /* and when node 0 sent it: the next must be later */
    int64_t active_ns;    /* when a partner last needed us: it asked, or we passed */
    uint64_t dropped;
    int send_errno; /* the last error that was logged */
};

/* ---- socket ---- */

static socklen_t address_size(int family)
{
    return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int open_socket(struct control *control, const struct control_conf *conf, struct err *err)
{
    const int bytes = SOCKET_BUFFER_BYTES;
    int previous_fd, code = netns_enter(conf->netns, &previous_fd, err);

    if (code < 0)
        return code;
    control->fd = socket(control->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (control->fd < 0) {
        code = err_set(err, -errno, "The control socket can't be made: %s.", strerror(errno));
    } else {
        setsockopt(control->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
        setsockopt(control->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        if (bind(control->fd, (const struct sockaddr *)&conf->address,
                 address_size(control->family)) < 0)
            code = err_set(err, -errno, "The control socket can't be bound to its address: %s.",
                           strerror(errno));
    }
    netns_leave(previous_fd);
    return code;
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

/* ---- out ---- */

/* Stamps, seals and sends. The first two stamps are the echo of RFC 5905: what the recipient said
 * last, and when that came. */
static void outlet_send(void *context, struct datagram *datagram)
{
    struct control *control = context;
    const union address *address = &control->addresses[datagram->recipient];
    const struct neighbour *neighbour =
        neighbours_find(&control->membership.neighbours, datagram->recipient);
    bool to_child = neighbours_parent(datagram->recipient) == control->membership.neighbours.self;
    bool answers = control->incoming.sender == datagram->recipient;
    struct offset_estimate root = {0, -1};
    uint8_t bytes[DATAGRAM_MAX];
    size_t size;

    datagram->origin_ns = answers     ? control->incoming.transmit_ns
                          : neighbour ? neighbour->transmit_ns
                                      : DATAGRAM_NO_TIME;
    datagram->receive_ns = answers     ? control->incoming.arrive_ns
                           : neighbour ? neighbour->receive_ns
                                       : DATAGRAM_NO_TIME;
    if (to_child) /* the others do not go by our clock */
        root = run_clock_estimate(&control->clock, clock_now());
    datagram->transmit_ns = clock_now();
    datagram->root_offset_ns = root.offset_ns;
    datagram->root_bound_ns = root.bound_ns;
    size = datagram_write(datagram, control->membership.key, bytes);
    if (sendto(control->fd, bytes, size, MSG_DONTWAIT, &address->any,
               address_size(control->family)) >= 0 ||
        errno == control->send_errno || errno == EAGAIN)
        return;
    control->send_errno = errno;
    log_warning("A control datagram to node %u can't be sent: %s.", datagram->recipient,
                strerror(errno));
}

static void blob_store_outlet_send(void *context, struct datagram *datagram)
{
    struct control *control = context;

    membership_send(&control->membership, datagram);
}

static void send_plain(struct control *control, enum datagram_type type, uint32_t recipient)
{
    struct datagram datagram = {.type = type, .recipient = recipient, .epoch = DATAGRAM_NONE};

    membership_send(&control->membership, &datagram);
}

/* ---- whose clock ---- */

/* Of a file's beginning; keyed with the run's key, because a boot id tells machines apart. A file
 * that can't be read is like nobody's when it is `needed`, else like an empty one. */
static uint32_t hash_file(const char *path, bool needed, const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint8_t hash[crypto_generichash_BYTES_MIN], bytes[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    uint32_t word;

    if (fd >= 0)
        close(fd);
    if (size <= 0 && needed)
        randombytes_buf(bytes, (size_t)(size = 16));
    crypto_generichash(hash, sizeof(hash), bytes, size > 0 ? (size_t)size : 0, key,
                       DATAGRAM_KEY_BYTES);
    memcpy(&word, hash, sizeof(word));
    return word;
}

static int64_t boot_id(const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint64_t boot = hash_file("/proc/sys/kernel/random/boot_id", true, key);

    return (int64_t)((boot << 32 | hash_file("/proc/self/timens_offsets", false, key)) >> 1 | 1);
}

/* ptp: what the kernel says now. */
static void ask_kernel(struct control *control)
{
    const struct kernel_sync_status *kernel = &control->kernel;
    struct offset_estimate realtime = {0, -1};

    kernel_sync_read(&control->kernel);
    realtime.offset_ns = kernel->offset_ns;
    if (kernel->synchronized)
        realtime.bound_ns =
            control->clock_conf.error_ns > 0 ? control->clock_conf.error_ns : kernel->maxerror_ns;
    run_clock_discipline(&control->clock, realtime);
}

static void learn_clocks(struct control *control, int64_t now_ns)
{
    const struct membership *membership = &control->membership;

    control->clocks_known = true;
    run_clock_decide(&control->clock, control->clock_conf.mode,
                     membership->root_boot == membership->boot, membership->neighbours.self == 0);
    if (control->clock.mode == CLOCK_PTP)
        ask_kernel(control);
    if (run_clock_asks(&control->clock))
        control->ping_ns = now_ns;
}

/* A datagram of the parent that was newer than all before: its time stamps. */
static void hear_clock(struct control *control, const struct datagram *datagram, int64_t now_ns)
{
    const struct offset_stamps stamps = {datagram->origin_ns, datagram->receive_ns,
                                         datagram->transmit_ns, now_ns};
    const struct offset_estimate root = {datagram->root_offset_ns, datagram->root_bound_ns};
    uint32_t self = control->membership.neighbours.self;

    if (self && datagram->sender == neighbours_parent(self))
        run_clock_heard(&control->clock, &stamps, root);
}

static void ask_parent(struct control *control)
{
    send_plain(control, DATAGRAM_PING, neighbours_parent(control->membership.neighbours.self));
}

static void ask_parent_when_due(struct control *control, int64_t now_ns)
{
    if (now_ns < control->ping_ns)
        return;
    control->ping_ns = now_ns + (control->pings++ < PINGS_QUICK ? PING_QUICK_NS : PING_SLOW_NS);
    control->asks_again = true;
    ask_parent(control);
}

/* ---- opening and joining ---- */

int control_open(struct control **control, const struct control_conf *conf, struct err *err)
{
    struct control *made;
    int code;

    *control = NULL;
    if (conf->address.ss_family != AF_INET && conf->address.ss_family != AF_INET6)
        return err_set(err, -EAFNOSUPPORT, "The control address is neither IPv4 nor IPv6.");
    if (sodium_init() < 0)
        return err_set(err, -EIO, "libsodium can't be initialized.");
    made = calloc(1, sizeof(*made));
    if (!made)
        return err_set(err, -ENOMEM, "No memory for the control endpoint.");
    made->fd = -1;
    made->family = conf->address.ss_family;
    made->timeout_ns = conf->barrier_timeout_ns;
    made->clock_conf = conf->clock;
    made->ping_ns = CLOCK_NEVER;
    blob_store_init(&made->blob_store, &(struct datagram_outlet){blob_store_outlet_send, made});
    code = open_socket(made, conf, err);
    if (code < 0) {
        control_close(made);
        return code;
    }
    *control = made;
    return 0;
}

int control_join(struct control *control, const struct control_peers *peers, struct err *err)
{
    const struct datagram_outlet outlet = {outlet_send, control};
    struct membership_conf conf = {
        .self = peers->self,
        .count = peers->count,
        .run_id = peers->run_id,
        .timeout_ns = control->timeout_ns,
        .cores = sysconf(_SC_NPROCESSORS_ONLN),
    };

    if (control->joined)
        return err_set(err, -EALREADY, "The control endpoint has joined a run already.");
    if (peers->self >= peers->count)
        return err_set(err, -EINVAL, "Node %u is not one of %u nodes.", peers->self, peers->count);
    for (uint32_t i = 0; i < peers->count; i++)
        if (i != peers->self && peers->addresses[i].ss_family != control->family)
            return err_set(err, -EAFNOSUPPORT,
                           "Node %u's control address is %s; this node's is not.", i,
                           control->family == AF_INET ? "IPv6" : "IPv4");
    control->addresses = calloc(peers->count, sizeof(*control->addresses));
    if (!control->addresses)
        return err_set(err, -ENOMEM, "No memory for the addresses of %u nodes.", peers->count);
    for (uint32_t i = 0; i < peers->count; i++)
        memcpy(&control->addresses[i], &peers->addresses[i], sizeof(*control->addresses));
    memcpy(conf.key, peers->key, sizeof(conf.key));
    conf.boot = boot_id(peers->key);
    while (conf.nonce == 0)
        randombytes_buf(&conf.nonce, sizeof(conf.nonce));
    control->incoming.sender = DATAGRAM_NONE;
    run_clock_init(&control->clock, peers->self == 0);
    membership_init(&control->membership, &conf, &outlet);
    sodium_memzero(&conf, sizeof(conf));
    control->joined = true;
    membership_start(&control->membership);
    return 0;
}

/* ---- in ---- */

/* Tells the children in the tree that node 0 lives. */
static void pass_beat(struct control *control, int64_t now_ns)
{
    const struct neighbours *neighbours = &control->membership.neighbours;

    control->beat_ns = now_ns;
    for (uint32_t i = 0; i < neighbours->size; i++)
        if (neighbours->all[i].index != 0 &&
            neighbours_parent(neighbours->all[i].index) == neighbours->self)
            send_plain(control, DATAGRAM_BEAT, neighbours->all[i].index);
}

static bool take_beat(struct control *control, const struct datagram *datagram, int64_t now_ns)
{
    uint32_t self = control->membership.neighbours.self;

    if (self == 0 || datagram->sender != neighbours_parent(self) ||
        datagram->transmit_ns <= control->beat_said_ns)
        return false;
    control->beat_said_ns = datagram->transmit_ns;
    pass_beat(control, now_ns);
    return true;
}

static bool dispatch(struct control *control, const struct datagram *datagram, int64_t now_ns)
{
    if (!membership_receive(&control->membership, datagram, now_ns))
        return false;
    if (datagram->to != control->membership.nonce && datagram->type != DATAGRAM_FETCH)
        return true; /* answered by HELLO */
    switch (datagram->type) {
    case DATAGRAM_QUESTION:
        control->active_ns = now_ns;
        return true;
    case DATAGRAM_FETCH:
    case DATAGRAM_BLOB:
        return blob_store_receive(&control->blob_store, datagram);
    case DATAGRAM_BEAT:
        return take_beat(control, datagram, now_ns);
    case DATAGRAM_PING:
        send_plain(control, DATAGRAM_PONG, datagram->sender);
        return true;
    default:
        return true;
    }
}

/* False: to be counted as dropped. */
static bool take(struct control *control, const uint8_t *bytes, size_t size, int64_t now_ns)
{
    const struct membership *membership = &control->membership;
    const struct neighbour *sender;
    struct datagram datagram;
    int64_t newest_ns;
    bool good;

    if (datagram_read(&datagram, bytes, size) < 0 ||
        datagram.recipient != membership->neighbours.self ||
        datagram.sender >= membership->neighbours.count ||
        datagram.sender == membership->neighbours.self ||
        !datagram_sealed(bytes, size, membership->key))
        return false;
    sender = neighbours_find(&control->membership.neighbours, datagram.sender);
    newest_ns = sender ? sender->transmit_ns : DATAGRAM_NO_TIME;
    control->incoming = (struct incoming){datagram.sender, datagram.transmit_ns, now_ns};
    good = dispatch(control, &datagram, now_ns);
    if (good && sender && sender->transmit_ns > newest_ns)
        hear_clock(control, &datagram, now_ns);
    if (good && datagram.type == DATAGRAM_PONG && control->asks_again) {
        control->asks_again = false;
        ask_parent(control);
    }
    control->incoming.sender = DATAGRAM_NONE;
    return good;
}

/* Reads one datagram; false when none is there. One by one, because its answer is what a partner
 * waits for. The clock is read after the system call: a time of arrival before the true one would
 * make the clock's bound a lie. */
static bool read_one(struct control *control)
{
    uint8_t bytes[DATAGRAM_MAX];
    ssize_t size = recv(control->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

    if (size < 0)
        return false;
    if (control->joined &&
        ((size_t)size > sizeof(bytes) || !take(control, bytes, (size_t)size, clock_now())))
        control->dropped++;
    return true;
}

unsigned control_work(struct control *control, int64_t now_ns)
{
    enum barrier_state before = control_barrier_state(control, NULL);
    unsigned read = 0;

    while (read < READS_MAX && read_one(control))
        read++;
    if (!control->joined)
        return read;
    membership_tick(&control->membership, now_ns);
    if (control->membership.met && !control->clocks_known)
        learn_clocks(control, now_ns);
    ask_parent_when_due(control, now_ns);
    blob_store_tick(&control->blob_store, now_ns);
    if (before != BARRIER_PASSED && membership_state(&control->membership) == BARRIER_PASSED)
        control->active_ns = now_ns;
    return read;
}

int64_t control_deadline(const struct control *control)
{
    int64_t due_ns = CLOCK_NEVER, mail_ns;

    if (!control->joined)
        return due_ns;
    due_ns = membership_deadline(&control->membership);
    mail_ns = blob_store_deadline(&control->blob_store);
    if (control->ping_ns < due_ns)
        due_ns = control->ping_ns;
    return mail_ns < due_ns ? mail_ns : due_ns;
}

/* ---- barrier and abort ---- */

void control_barrier_enter(struct control *control, const struct barrier_values *mine,
                           int64_t now_ns)
{
    if (control->clocks_known && run_clock_asks(&control->clock))
        control->ping_ns = now_ns; /* what follows a barrier needs a fresh offset */
    membership_enter(&control->membership, mine, now_ns);
    control->active_ns = now_ns;
}

enum barrier_state control_barrier_state(const struct control *control, struct barrier_values *all)
{
    enum barrier_state state =
        control->joined ? membership_state(&control->membership) : BARRIER_WAITING;

    if (state == BARRIER_PASSED && all)
        *all = *barrier_values(&control->membership.barrier);
    return state;
}

const struct control_fault *control_fault(const struct control *control)
{
    return control->joined ? membership_fault(&control->membership) : NULL;
}

void control_abort(struct control *control, const char *text, bool impossible, int64_t now_ns)
{
    if (control->joined)
        membership_abort(&control->membership, text, impossible, now_ns);
}

/* ---- blobs, heartbeats ---- */

int control_publish(struct control *control, uint64_t id, const struct blob *blob)
{
    return blob_store_publish(&control->blob_store, id, blob);
}

int control_fetch(struct control *control, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns)
{
    if (!control->joined)
        return -EAGAIN;
    if (node >= control->membership.neighbours.count)
        return -EINVAL;
    if (node == control->membership.neighbours.self)
        node = BLOB_STORE_OWN;
    return blob_store_fetch(&control->blob_store, node, id, blob, now_ns);
}

void control_forget(struct control *control)
{
    blob_store_clear(&control->blob_store);
}

bool control_crowded(const struct control *control)
{
    return control->membership.crowded;
}

void control_beat(struct control *control, int64_t now_ns)
{
    if (control->membership.met && control->membership.neighbours.self == 0)
        pass_beat(control, now_ns);
}

int64_t control_last_beat_ns(const struct control *control)
{
    return control->beat_ns;
}

uint64_t control_dropped(const struct control *control)
{
    return control->dropped;
}

/* ---- run time ---- */

struct control_clock control_clock_at(struct control *control, int64_t at_ns)
{
    struct offset_estimate root;

    if (control->clock.mode == CLOCK_PTP)
        ask_kernel(control);
    root = run_clock_estimate(&control->clock, at_ns);
    return (struct control_clock){.offset_ns = root.offset_ns, .bound_ns = root.bound_ns};
}

struct control_clock control_clock(struct control *control)
{
    return control_clock_at(control, clock_now());
}

struct control_clocks control_clocks(const struct control *control)
{
    const struct membership *membership = &control->membership;
    struct control_clocks clocks = {
        .mode = control->clock.mode,
        .maxerror_ns = -1,
        .esterror_ns = -1,
    };

    if (!control->clocks_known)
        return clocks;
    clocks.with_node_0 = SAME_BOOT(membership->root_boot, membership->boot);
    clocks.one_clock = membership->root_boot == membership->boot;
    clocks.id = (uint64_t)membership->boot;
    if (clocks.mode == CLOCK_PTP) {
        clocks.maxerror_ns = control->kernel.maxerror_ns;
        clocks.esterror_ns = control->kernel.esterror_ns;
    }
    return clocks;
}

bool control_clock_settled(const struct control *control)
{
    return control->clocks_known &&
           (!run_clock_asks(&control->clock) || control->pings > PINGS_QUICK);
}

/* ---- closing ---- */

/* Until when partners may need us. After a fault: until all neighbours know it or were told often
 * enough. After a barrier: a partner whose arrival from us was lost asks within its back-off. */
static int64_t needed_until(const struct control *control)
{
    if (membership_fault(&control->membership))
        return membership_deadline(&control->membership) == CLOCK_NEVER ? 0 : CLOCK_NEVER;
    if (!barrier_passed(&control->membership.barrier))
        return 0;
    return control->active_ns + LINGER_QUIET_NS;
}

static void linger(struct control *control)
{
    int64_t start_ns = clock_now(), now_ns = start_ns;

    while (now_ns < needed_until(control) && now_ns - start_ns < LINGER_MOST_NS) {
        struct pollfd readable = {.fd = control->fd, .events = POLLIN};
        int64_t wait_ns = control_deadline(control) - now_ns;

        if (wait_ns > 10 * NS_PER_MS)
            wait_ns = 10 * NS_PER_MS;
        poll(&readable, 1, wait_ns > 0 ? (int)(wait_ns / NS_PER_MS) + 1 : 0);
        now_ns = clock_now();
        control_work(control, now_ns);
    }
}

void control_close(struct control *control)
{
    if (!control)
        return;
    if (control->joined && control->membership.neighbours.count > 1)
        linger(control);
    if (control->fd >= 0)
        close(control->fd);
    blob_store_clear(&control->blob_store);
    free(control->addresses);
    sodium_memzero(control, sizeof(*control)); /* keys */
    free(control);
}
