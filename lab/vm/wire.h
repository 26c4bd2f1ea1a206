/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a guest's agent and its host say to each other over one virtio-serial port: frames of a
 * header of 4 bytes and a payload. A port carries one session at a time: one program with its
 * streams.
 *
 *     host connects            agent: HELLO
 *     host: START              agent: ERROR, or output until EXIT
 *     host: INPUT.. END, SIGNAL
 *     host hangs up            the program reads end of file; what still runs a while later is
 * ended
 *
 * scripts/python/switchbench/labs/vm/attach.py is the host's side.
 */
#ifndef GUESTS_WIRE_H
#define GUESTS_WIRE_H

#include <assert.h>
#include <stdint.h>

#define WIRE_PAYLOAD_BYTES 16384

/* The first frame of each session, by which the host skips what another may have left in the port.
 */
#define WIRE_GREETING "switchbench-agent 1"

enum wire_type {
    /* From the host. */
    WIRE_START =
        'S', /* strings, each ended by a zero: NAME=VALUE.., an empty one, the words of a command */
    WIRE_INPUT = 'I',  /* bytes for standard input */
    WIRE_END = 'E',    /* end of file for standard input */
    WIRE_SIGNAL = 'K', /* one byte: a signal for the program's process group */

    /* From the agent. */
    WIRE_HELLO = 'H',  /* WIRE_GREETING */
    WIRE_OUTPUT = 'O', /* bytes of standard output */
    WIRE_LOG = 'L',    /* bytes of standard error */
    WIRE_ERROR = 'F',  /* a sentence: the program could not be started */
    WIRE_EXIT = 'X',   /* one byte: exit status; or two: zero and the signal that ended it */
};

struct wire_header {
    uint8_t type;
    uint8_t zero;
    uint8_t length[2]; /* of the payload; little endian */
};

static_assert(sizeof(struct wire_header) == 4, "a frame's header");

#endif
