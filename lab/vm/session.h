/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Serves one virtio-serial port: session after session, each one program whose standard streams and
 * exit status travel over the port (wire.h).
 */
#ifndef GUESTS_SESSION_H
#define GUESTS_SESSION_H

/* Returns a negative errno when the port can't be served at all; else never. Takes over the calling
 * process: its signals SIGIO and SIGCHLD, and every child. */
int session_serve(const char *device);

#endif
