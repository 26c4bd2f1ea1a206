/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A lock between threads of different priority: whoever holds it runs at the priority of
 * whoever waits for it.
 *
 * The main thread may be at real-time priority (cores.h); by a plain lock it would wait for a
 * worker that does not get the core because others are before it.
 */
#ifndef ENGINE_LOCK_H
#define ENGINE_LOCK_H

#include <pthread.h>

/**
 * @brief Make a lock whose holder inherits the priority of who waits for it.
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
