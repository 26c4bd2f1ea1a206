/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Lock between threads of different priority: its holder runs at the priority of the waiting
 * thread.
 *
 * The main thread may be at real-time priority (cpu_placement.h); with a plain lock it would wait
 * for a worker that does not get the core because other threads come first.
 */
#ifndef ENGINE_LOCK_H
#define ENGINE_LOCK_H

#include <pthread.h>

/**
 * @brief Initialise a lock with priority inheritance.
 *
 * @param lock Lock; the caller destroys it by pthread_mutex_destroy().
 */
static inline void lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

#endif
