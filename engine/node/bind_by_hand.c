/* SPDX-License-Identifier: BSD-3-Clause */
#include "bind_by_hand.h"

#include <signal.h>
#include <stdio.h>

static void print_sentence(void *data, const char *sentence)
{
    (void)data;
    printf("%s\n", sentence);
}

/* A change that is half done is ended, or taken back, before a signal counts. */
int bind_by_hand(const struct options *options, struct err *err)
{
    const struct bind_place place = {
        .root = "",
        .journal = options->journal != NULL ? options->journal : BIND_JOURNAL,
        .kernel = &bind_kernel,
        .say = print_sentence,
    };
    sigset_t all;
    int rc;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    rc = options->bind ? bind_devices(&place, &options->lend, err) : bind_restore(&place, err);
    if (rc == BIND_ALREADY)
        puts("All of them are bound already, by an earlier --bind; its journal is kept.");
    return rc < 0 ? rc : 0;
}
