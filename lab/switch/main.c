/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switchbench-switch: reads a description, runs a switch between devices, and reports its counts
 * (doc/developer/switch.md).
 */
#include "clock.h"
#include "cpu_placement.h"
#include "describe.h"
#include "eal.h"
#include "log.h"
#include "port_array.h"
#include "switch_report.h"

#include <errno.h>
#include <poll.h>
#include <rte_pause.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NAP_NS (50 * NS_PER_US)
#define SHORT_NS (5 * NS_PER_US)  /* too short for a sleep */
#define HOUSEKEEPING_NS NS_PER_MS /* input, links, records */
#define LAST_WORDS_NS (60 * NS_PER_MS)
#define LINE_BYTES 4096 /* first room for a line */

static const char usage[] =
    "usage: switchbench-switch [--version] [--help]\n"
    "\n"
    "An Ethernet switch as described on standard input, between DPDK devices and kernel\n"
    "interfaces. The description is the first line, in JSON; after it, the lines `report`,\n"
    "`clear` and `reset MILLISECONDS` follow. Records go to standard output, one a line.\n"
    "It runs until its input ends, or SIGTERM.\n"
    "\n"
    "The description's keys are explained in doc/developer/switch.md.\n";

static volatile sig_atomic_t signalled;

static void note_signal(int number)
{
    signalled = number;
}

struct program {
    char *line; /* of standard input, without its end: the last one, or `used` bytes of the next */
    size_t used;
    size_t room;
    struct description description;
    struct port_array port_array;
    struct switch_report report;
    unsigned reports; /* requested reports that have not begun */
};

/* Read the next line of the input into `line`, with a timeout as for poll(). Return 1: the line is
 * complete; 0: its end has not arrived yet; -1: the input has ended or cannot be read. One byte is
 * read at a time, so that an incomplete line blocks nothing and poll() reports the remaining
 * bytes. */
static int read_line(struct program *program, int wait_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t got;

    while (poll(&input, 1, wait_ms) == 1) {
        if (program->used == program->room) {
            char *grown = realloc(program->line, 2 * program->room + LINE_BYTES);

            if (grown == NULL)
                return -1;
            program->line = grown;
            program->room = 2 * program->room + LINE_BYTES;
        }
        got = read(STDIN_FILENO, program->line + program->used, 1);
        if (got < 0 || (got == 0 && program->used == 0))
            return -1;
        if (got > 0 && program->line[program->used] != '\n') {
            program->used++;
            continue;
        }
        program->line[program->used] = '\0';
        program->line[strcspn(program->line, "\r")] = '\0';
        program->used = 0;
        return 1;
    }
    return 0;
}

static int set_up(struct program *program, struct err *err)
{
    int rc;

    if (read_line(program, -1) != 1)
        return err_set(
            err, -EINVAL,
            "standard input ended before the switch's description: write it as one line of "
            "JSON, with a newline");
    rc = describe_read(&program->description, program->line, err);
    if (rc < 0)
        return rc;
    log_setup(program->description.name);
    rc = eal_start(program->description.name, err);
    if (rc == 0)
        rc = port_array_open(&program->port_array, &program->description.conf, err);
    if (rc < 0)
        return rc;
    prctl(PR_SET_TIMERSLACK, 1);
    reserve_cores(!program->description.poll);
    switch_report_open(&program->report, &program->port_array, &program->description);
    return 0;
}

/* --- while it runs --- */

static void run_command(struct program *program, const char *line)
{
    unsigned down_ms;

    if (strcmp(line, "report") == 0) {
        /* Requested reports run one after the other, at the pace of their reader */
        program->reports++;
    } else if (strcmp(line, "clear") == 0) {
        model_clear(program->port_array.model);
        for (unsigned i = 0; i < program->port_array.count; i++)
            program->port_array.ports[i].lost = 0;
        program->report.began_ns = clock_now();
    } else if (sscanf(line, "reset %u", &down_ms) == 1) {
        model_reset(program->port_array.model, down_ms * NS_PER_MS);
    } else if (line[0] != '\0') {
        log_warning("unknown command '%.80s'; valid commands: report, clear, reset MILLISECONDS",
                    line);
    }
}

/* Handle the next command of the input, check the devices, and begin a requested report; return
 * false at the end of the input. */
static bool housekeeping(struct program *program)
{
    int line = read_line(program, 0);

    if (line > 0)
        run_command(program, program->line);
    port_array_look(&program->port_array);
    if (switch_report_done(&program->report) && program->reports > 0) {
        switch_report_begin(&program->report, "report");
        program->reports--;
    }
    return line >= 0;
}

static void nap(const struct program *program, int64_t now_ns)
{
    int64_t until = model_next(program->port_array.model);

    if (program->description.poll) {
        rte_pause();
        return;
    }
    until = until < now_ns + NAP_NS ? until : now_ns + NAP_NS;
    if (until - now_ns > SHORT_NS)
        clock_sleep_until(until);
}

/* Run the switch; return the reason for its end. */
static const char *run(struct program *program)
{
    int64_t housekeeping_ns = 0;

    while (signalled == 0) {
        int64_t now_ns = clock_now();

        if (now_ns >= housekeeping_ns) {
            if (!housekeeping(program))
                return "end-of-input";
            housekeeping_ns = now_ns + HOUSEKEEPING_NS;
        }
        if (port_array_turn(&program->port_array, now_ns) == 0)
            nap(program, now_ns);
    }
    return "signal";
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = note_signal};
    struct program program = {0};
    struct err err = {""};
    int status = 0, rc = 0;

    if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "--help") == 0)) {
        fputs(argv[1][2] == 'h' ? usage : "switchbench-switch " SWITCHBENCH_VERSION "\n", stdout);
        return 0;
    }
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        rc = err_set(&err, -EINVAL, "unexpected argument '%s': see switchbench-switch --help",
                     argv[1]);
    if (rc == 0)
        rc = set_up(&program, &err);
    if (rc == 0) {
        const char *reason = run(&program);

        if (!switch_report_end(&program.report, reason, clock_now() + LAST_WORDS_NS))
            status = 3;
        port_array_close(&program.port_array);
    }
    if (rc < 0) {
        fprintf(stderr, "switchbench-switch: %s\n", err.text);
        status = rc == -EINVAL ? 2 : 3;
    }
    mapping_free(&program.description.memory);
    free(program.line);
    return status;
}
