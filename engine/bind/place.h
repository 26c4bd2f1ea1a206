/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where devices are bound and what is asked for: given to every step of binding.
 */
#ifndef ENGINE_BIND_PLACE_H
#define ENGINE_BIND_PLACE_H

#include "err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What is asked of the kernel beyond reading files: a test that keeps /sys and /proc in a folder
 * plays its part. Each returns 0 or a negative errno. */
struct bind_kernel {
    /* May the device leave its driver (guard_check_pci)? -EPERM with the sentence: no. */
    int (*guard)(const char *pci, const char *driver, struct err *err);
    /* One write(2) of a whole text to a file of sysfs or procfs. */
    int (*write)(const char *path, const char *text);
    /* What an interface is like now; the object is the caller's. */
    int (*read_interface)(const char *name, json_t **state, struct err *err);
    /* Makes interface `name` what `state` says, its name included. */
    int (*write_interface)(const char *name, const json_t *state, struct err *err);
};

extern const struct bind_kernel bind_kernel;

/* Where and how; what was done is told to `say` (NULL: nobody), a sentence each. */
struct bind_place {
    const char *root;    /* goes before each path in /sys and /proc: "" outside tests */
    const char *journal; /* its file; the folder is made */
    const struct bind_kernel *kernel;
    void (*say)(void *data, const char *sentence);
    void *data;
    long try_ns; /* between two looks at what the kernel does in its own time; 0: 100 ms */
};

struct bind_request {
    const char *const *devices; /* PCI addresses as /sys spells them */
    size_t count;
    const char *driver; /* vfio-pci | uio_pci_generic | igb_uio */
    unsigned hugepages; /* of 2 MiB, reserved for the time: at least so many; 0: as they are */
};

#endif
