// SPDX-License-Identifier: BSD-3-Clause
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define FRAME_BYTES (sizeof(struct wire_header) + WIRE_PAYLOAD_BYTES)
#define MAX_STRINGS 512

// After a hang-up: so long for a program to end by itself, then SIGTERM, then SIGKILL.
#define PATIENCE_MS 2000

// A change of the port's other end is told by SIGIO; this is how late it may be seen without one.
#define IDLE_MS 1000

enum { TO_PROGRAM, FROM_PROGRAM, LOG_OF_PROGRAM, STREAMS };

struct buffer {
    size_t begin, end;
    uint8_t bytes[FRAME_BYTES];
};

struct session {
    int port;
    int signals; // signalfd of SIGIO and SIGCHLD
    struct buffer in, out;
    size_t input_left; // of the INPUT frame at the head of `in`
    int stream[STREAMS];
    pid_t program;
    bool ended; // the program; its wait status is below
    int status;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t held(const struct buffer *buffer)
{
    return buffer->end - buffer->begin;
}

static void forget(struct session *session, int which)
{
    if (session->stream[which] >= 0)
        close(session->stream[which]);
    session->stream[which] = -1;
}

// One frame at a time waits to be sent: nothing is read from the program until it is gone.
static void say(struct session *session, enum wire_type type, const void *payload, size_t length)
{
    struct wire_header header = {.type = (uint8_t)type,
                                 .length = {(uint8_t)length, (uint8_t)(length >> 8)}};
    memcpy(session->out.bytes, &header, sizeof header);
    if (length > 0)
        memmove(session->out.bytes + sizeof header, payload, length);
    session->out.begin = 0;
    session->out.end = sizeof header + length;
}

static bool host_is_there(const struct session *session)
{
    struct pollfd port = {.fd = session->port};
    return poll(&port, 1, 0) >= 0 && !(port.revents & POLLHUP);
}

/* ---- a program ---- */

static void become(char *const *environment, char *const *command, int *ends)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    for (int i = 0; i < STREAMS; i++)
        dup2(ends[i], i);
    for (; *environment != NULL; environment++)
        putenv(*environment);
    execvp(command[0], command);
    fprintf(stderr, "%s can't be run in the guest: %s\n", command[0], strerror(errno));
    _exit(127);
}

static int start(struct session *session, char *const *environment, char *const *command)
{
    int pipes[STREAMS][2], ends[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return -errno;
        int ours = i == TO_PROGRAM ? 1 : 0;
        ends[i] = pipes[i][1 - ours];
        session->stream[i] = pipes[i][ours];
        fcntl(session->stream[i], F_SETFL, O_NONBLOCK);
    }
    session->ended = false;
    session->program = fork();
    if (session->program < 0)
        return -errno;
    if (session->program == 0)
        become(environment, command, ends);
    for (int i = 0; i < STREAMS; i++)
        close(ends[i]);
    return 0;
}

static int start_from(struct session *session, char *payload, size_t length)
{
    char *strings[MAX_STRINGS] = {NULL};
    int count = 0, command = -1;
    if (length == 0 || payload[length - 1] != '\0')
        return -EINVAL;
    for (char *at = payload; at < payload + length; at += strlen(at) + 1) {
        if (count == MAX_STRINGS - 1)
            return -E2BIG;
        strings[count] = *at != '\0' || command >= 0 ? at : NULL;
        if (strings[count++] == NULL)
            command = count;
    }
    if (command < 0 || strings[command] == NULL)
        return -EINVAL;
    return start(session, strings, strings + command);
}

static void reap(struct session *session)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == session->program) {
            session->ended = true;
            session->status = status;
        }
    }
}

static void send_signal(const struct session *session, int number)
{
    if (session->program > 0)
        kill(-session->program, number);
}

/* ---- what the host says ---- */

static void obey(struct session *session, uint8_t type, uint8_t *payload, size_t length)
{
    if (type == WIRE_START && session->program == 0) {
        int error = start_from(session, (char *)payload, length);
        if (error != 0) {
            const char *sentence = strerror(-error);
            say(session, WIRE_ERROR, sentence, strlen(sentence));
        }
    } else if (type == WIRE_END) {
        forget(session, TO_PROGRAM);
    } else if (type == WIRE_SIGNAL && length == 1) {
        send_signal(session, payload[0]);
    }
}

// Returns whether something was taken from `in`.
static bool take_input(struct session *session)
{
    struct buffer *in = &session->in;
    size_t ready = session->input_left < held(in) ? session->input_left : held(in);
    if (ready == 0)
        return false;
    ssize_t done = (ssize_t)ready;
    if (session->stream[TO_PROGRAM] >= 0)
        done = write(session->stream[TO_PROGRAM], in->bytes + in->begin, ready);
    if (done < 0 && errno == EAGAIN)
        return false;
    if (done < 0) { // nobody reads it: the rest is for nobody
        forget(session, TO_PROGRAM);
        done = (ssize_t)ready;
    }
    in->begin += (size_t)done;
    session->input_left -= (size_t)done;
    return true;
}

static bool take_frame(struct session *session)
{
    struct buffer *in = &session->in;
    struct wire_header header;
    if (session->input_left > 0)
        return take_input(session);
    if (held(in) < sizeof header)
        return false;
    memcpy(&header, in->bytes + in->begin, sizeof header);
    size_t length = header.length[0] | (size_t)header.length[1] << 8;
    if (header.type == WIRE_INPUT) {
        session->input_left = length;
        in->begin += sizeof header;
        return true;
    }
    if (held(in) < sizeof header + length)
        return false;
    uint8_t *payload = in->bytes + in->begin + sizeof header;
    in->begin += sizeof header + length;
    obey(session, header.type, payload, length);
    return true;
}

static void hear(struct session *session)
{
    struct buffer *in = &session->in;
    if (in->begin > 0) {
        memmove(in->bytes, in->bytes + in->begin, held(in));
        in->end -= in->begin;
        in->begin = 0;
    }
    ssize_t got = read(session->port, in->bytes + in->end, sizeof in->bytes - in->end);
    if (got > 0)
        in->end += (size_t)got;
}

/* ---- what the program says ---- */

static void send_on(struct session *session)
{
    struct buffer *out = &session->out;
    ssize_t done = write(session->port, out->bytes + out->begin, held(out));
    if (done > 0)
        out->begin += (size_t)done;
}

// Returns whether the stream had something.
static bool relay(struct session *session, int which, enum wire_type type)
{
    uint8_t *payload = session->out.bytes + sizeof(struct wire_header);
    ssize_t got = read(session->stream[which], payload, WIRE_PAYLOAD_BYTES);
    if (got > 0)
        say(session, type, payload, (size_t)got);
    else if (got == 0 || errno != EAGAIN)
        forget(session, which);
    return got > 0;
}

// The program has ended: what it wrote before, then how it ended.
static void conclude(struct session *session)
{
    if (session->stream[FROM_PROGRAM] >= 0 && relay(session, FROM_PROGRAM, WIRE_OUTPUT))
        return;
    if (session->stream[LOG_OF_PROGRAM] >= 0 && relay(session, LOG_OF_PROGRAM, WIRE_LOG))
        return;
    for (int i = 0; i < STREAMS; i++)
        forget(session, i);
    uint8_t how[2] = {0};
    if (WIFSIGNALED(session->status))
        how[1] = (uint8_t)WTERMSIG(session->status);
    else
        how[0] = (uint8_t)WEXITSTATUS(session->status);
    say(session, WIRE_EXIT, how, WIFSIGNALED(session->status) ? 2 : 1);
    send_signal(session, SIGKILL); // whatever it left behind in its group
    session->program = 0;
    session->ended = false;
}

/* ---- the loop ---- */

static int wait_ms(const struct session *session)
{
    return session->ended && held(&session->out) == 0 ? 0 : IDLE_MS;
}

enum { PORT, SIGNALS, INPUT, OUTPUT, LOG, WATCHED };

static void watch(const struct session *session, struct pollfd *fds)
{
    bool free_out = held(&session->out) == 0;
    bool full_in = held(&session->in) == sizeof session->in.bytes;
    fds[PORT] = (struct pollfd){.fd = session->port};
    fds[PORT].events = (short)((full_in ? 0 : POLLIN) | (free_out ? 0 : POLLOUT));
    fds[SIGNALS] = (struct pollfd){.fd = session->signals, .events = POLLIN};
    bool waiting = session->input_left > 0 && held(&session->in) > 0;
    fds[INPUT] =
        (struct pollfd){.fd = waiting ? session->stream[TO_PROGRAM] : -1, .events = POLLOUT};
    fds[OUTPUT] =
        (struct pollfd){.fd = free_out ? session->stream[FROM_PROGRAM] : -1, .events = POLLIN};
    fds[LOG] =
        (struct pollfd){.fd = free_out ? session->stream[LOG_OF_PROGRAM] : -1, .events = POLLIN};
}

static void drop_signals(const struct session *session)
{
    struct signalfd_siginfo info;
    while (read(session->signals, &info, sizeof info) > 0)
        continue;
}

// One turn while the host is there; returns false once it is not.
static bool turn(struct session *session)
{
    struct pollfd fds[WATCHED];
    watch(session, fds);
    if (poll(fds, WATCHED, wait_ms(session)) < 0)
        return true;
    drop_signals(session);
    reap(session);
    if (fds[PORT].revents & POLLHUP)
        return false;
    if (fds[PORT].revents & POLLIN)
        hear(session);
    while (take_frame(session))
        continue;
    if (held(&session->out) > 0)
        send_on(session);
    else if (fds[OUTPUT].revents != 0)
        relay(session, FROM_PROGRAM, WIRE_OUTPUT);
    else if (fds[LOG].revents != 0)
        relay(session, LOG_OF_PROGRAM, WIRE_LOG);
    else if (session->program > 0 && session->ended)
        conclude(session);
    return true;
}

// The host has gone: the program reads end of file, and what it still says is for nobody.
static void clear_up(struct session *session)
{
    static const int signals[] = {0, SIGTERM, SIGKILL};
    forget(session, TO_PROGRAM);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (signals[i] != 0)
            send_signal(session, signals[i]);
        int64_t limit_ms = now_ms() + PATIENCE_MS;
        while (session->program > 0 && !session->ended && now_ms() < limit_ms) {
            struct pollfd fds[] = {{.fd = session->signals, .events = POLLIN},
                                   {.fd = session->stream[FROM_PROGRAM], .events = POLLIN},
                                   {.fd = session->stream[LOG_OF_PROGRAM], .events = POLLIN}};
            poll(fds, sizeof fds / sizeof *fds, 100);
            drop_signals(session);
            for (int which = FROM_PROGRAM; which < STREAMS; which++)
                if (session->stream[which] >= 0)
                    relay(session, which, WIRE_OUTPUT);
            reap(session);
        }
    }
    send_signal(session, SIGKILL);
    for (int i = 0; i < STREAMS; i++)
        forget(session, i);
}

static void wait_for_host(struct session *session)
{
    while (!host_is_there(session)) {
        struct pollfd signals = {.fd = session->signals, .events = POLLIN};
        poll(&signals, 1, IDLE_MS);
        drop_signals(session);
        reap(session);
    }
}

static void one_session(struct session *session)
{
    session->in.begin = session->in.end = 0;
    session->out.begin = session->out.end = 0;
    session->input_left = 0;
    session->program = 0;
    session->ended = false;
    for (int i = 0; i < STREAMS; i++)
        session->stream[i] = -1;
    wait_for_host(session);
    say(session, WIRE_HELLO, WIRE_GREETING, strlen(WIRE_GREETING));
    while (turn(session))
        continue;
    clear_up(session);
}

int session_serve(const char *device)
{
    static struct session session;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGIO);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    session.signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    session.port = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (session.signals < 0 || session.port < 0)
        return -errno;
    if (fcntl(session.port, F_SETOWN, getpid()) != 0 ||
        fcntl(session.port, F_SETFL, O_NONBLOCK | O_ASYNC) != 0)
        return -errno;
    for (;;)
        one_session(&session);
}
