/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A machine as a folder: /sys and /proc with two network devices, a disk and a bridge, and a kernel
 * that does what writes to them ask for. Writes can be made to fail, or to kill the process.
 */
#ifndef TESTS_UNIT_BIND_TREE_H
#define TESTS_UNIT_BIND_TREE_H

#include "bind.h"

#define TREE_A "0000:3b:00.0" /* at ixgbe as eth7, 2 virtual functions possible, IOMMU group 7 */
#define TREE_B "0000:3b:00.1" /* at ixgbe as eth8, in group 8 */
#define TREE_DISK "0000:00:1f.2"

struct tree {
    char root[64];
    char journal[96];
    struct bind_place place;
    char said[4096];  /* all sentences, a line each */
    char guarded[64]; /* the device that the guard refuses; "": none */
    int writes;       /* so far */
    int fails_at;     /* the number of the write that fails with -EIO; 0: none ... */
    int dies_at;      /* ... or that ends the process */
    bool journaled;   /* the journal was there at the first write */
};

extern struct tree tree;

void tree_make(void);
void tree_remove(void);

/* Small changes to the machine; paths begin below its root. */
void tree_file(const char *path, const char *text);
void tree_link(const char *path, const char *target);
void tree_folder(const char *path);
void tree_drop(const char *path);
bool tree_has(const char *path);

/* All of /sys and /proc, a line each; the text is the caller's. */
char *tree_picture(void);

#endif
