/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Temporary moves of the calling thread into another network namespace.
 *
 * The thread moves there, makes its sockets or devices, and moves back. The sockets and devices
 * stay in the namespace where they were made. Other threads do not move.
 */
#ifndef ENGINE_NETNS_H
#define ENGINE_NETNS_H

#include "err.h"

/**
 * @brief Path of the calling thread's network namespace; /proc/self would be the namespace of the
 * process's first thread.
 */
#define NETNS_OWN "/proc/thread-self/ns/net"

/**
 * @brief Move the calling thread into a network namespace.
 *
 * @param name Name below /run/netns, or a path when it holds a slash; NULL or "": stay.
 * @param[out] previous_fd Descriptor of the previous namespace, for netns_leave(); -1: the thread
 *        stayed, or the call failed.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -ENOENT: no such namespace; -EPERM: needs CAP_SYS_ADMIN; -EINVAL: not a network
 *        namespace; or another negative errno.
 */
int netns_enter(const char *name, int *previous_fd, struct err *err);

/**
 * @brief Move the calling thread back into its previous namespace and close the descriptor.
 *
 * A thread that could not go back would work in the wrong network from then on, so the process ends
 * there.
 *
 * @param previous_fd Descriptor from netns_enter(); -1: nothing to do.
 */
void netns_leave(int previous_fd);

#endif
