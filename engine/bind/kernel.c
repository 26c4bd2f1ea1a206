/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The real kernel, behind place.h's table.
 */
#include "guard.h"
#include "interface.h"
#include "place.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first word of SSH_CONNECTION is the controller's, or a person's, address. */
static int guard(const char *pci, const char *driver, struct err *err)
{
    const char *connection = getenv("SSH_CONNECTION");
    char controller[64];
    struct guard_rules rules = {.controller = controller, .driver = driver, .leaves_kernel = true};

    snprintf(controller, sizeof controller, "%s", connection != NULL ? connection : "");
    controller[strcspn(controller, " ")] = '\0';
    return guard_check_pci(pci, &rules, err);
}

const struct bind_kernel bind_kernel = {
    .guard = guard,
    .write = sysfs_write,
    .read_interface = bind_interface_read,
    .write_interface = bind_interface_write,
};
