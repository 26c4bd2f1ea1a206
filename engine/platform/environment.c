/* SPDX-License-Identifier: BSD-3-Clause */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTION "SSH_CONNECTION"

int environment_clean(void)
{
    const char *connection = getenv(CONNECTION);
    char *kept = connection != NULL ? strdup(connection) : NULL;
    int rc = 0;

    if (connection != NULL && kept == NULL)
        return -ENOMEM;
    clearenv();
    if (kept != NULL)
        rc = setenv(CONNECTION, kept, 1);
    if (rc == 0)
        rc = setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    free(kept);
    return rc == 0 ? 0 : -errno;
}
